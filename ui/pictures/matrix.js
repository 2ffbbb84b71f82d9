// The matrix: an SVG made by the server. A plain click on a cell goes there within the app; any other kind of click is the
// browser's own (a new tab, copying the address), since every cell is a link.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  if (root.shown !== data) {
    root.shown = data
    root.innerHTML = data
  }
  root.onclick = (event) => {
    const link = event.target.closest("a")
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    setTriggerValue("open", link.getAttribute("href"))
  }
}
