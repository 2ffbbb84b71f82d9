// The drawing of a block. Where a page takes clicks, each part is a button that says what a click on it does.

const drawn = new WeakMap()
const told = new WeakMap() // clicks that the server has not answered yet, each with its number: the latest says the others again
const PATIENCE = 5000 // ms after which one is given up: it was lost with the connection, and is not to be done along with a later one

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const clicks = told.get(root) ?? { number: 0, waiting: [] }
  told.set(root, clicks)
  clicks.number = Math.max(clicks.number, data.seen)
  clicks.waiting = clicks.waiting.filter(({ number }) => number > data.seen)
  if (drawn.get(root) === data.picture) return
  drawn.set(root, data.picture)
  const [picture, tip] = root.children
  const place = [...picture.querySelectorAll(".part")].find((each) => each.matches(":focus"))?.dataset.place
  picture.innerHTML = data.picture
  picture.classList.toggle("clicked", data.clicked)
  tip.style.display = "none"
  if (!data.clicked) return
  for (const part of picture.querySelectorAll(".part")) {
    part.setAttribute("role", "button")
    part.setAttribute("tabindex", "0")
    part.setAttribute("aria-label", part.dataset.words)
    if (data.gone) part.setAttribute("aria-pressed", data.gone.includes(part.dataset.part))
    const click = () => {
      hide()
      clicks.number = Math.max(clicks.number + 1, Math.floor(performance.now())) // greater than those of a drawing that is gone
      const now = performance.now()
      clicks.waiting = [...clicks.waiting.filter(({ at }) => now - at < PATIENCE), { number: clicks.number, part: part.dataset.part, at: now }]
      setTriggerValue("picked", clicks.waiting.map(({ number, part }) => [number, part]))
    }
    const show = () => {
      tip.textContent = part.dataset.words
      tip.style.display = "block"
      tip.style.top = `${(part.getBoundingClientRect().bottom - root.getBoundingClientRect().top) * (root.clientWidth / root.getBoundingClientRect().width) + 6}px`
    }
    const hide = () => { tip.style.display = "none" }
    Object.assign(part, { onclick: click, onpointerenter: show, onfocus: show, onpointerleave: hide, onblur: hide })
    part.onkeydown = (event) => {
      if (event.key === "Escape") hide()
      if (event.key !== "Enter" && event.key !== " ") return
      event.preventDefault()
      click()
    }
    if (part.dataset.place === place) { part.focus(); hide() } // what was clicked is drawn anew
  }
}
