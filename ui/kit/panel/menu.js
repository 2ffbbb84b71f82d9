// The menu of pages. A plain click turns to a page as the browser's Back would, which Streamlit follows without loading all of it
// again; the mark, which the address has while it is asked for, says that it was no Back (ui/kit/session/address.py).

const LARGE = "ablation-presenter" // kept by the browser, for all pages

export default function ({ data, parentElement }) {
  const [nav, presenter] = parentElement.querySelector(".ablation-menu").children
  const size = () => {
    const is = localStorage.getItem(LARGE) === "on"
    document.documentElement.style.setProperty("--ablation-zoom", is ? 1.35 : 1)
    presenter.setAttribute("aria-pressed", is)
  }
  presenter.onclick = () => {
    localStorage.setItem(LARGE, localStorage.getItem(LARGE) === "on" ? "off" : "on")
    size()
    window.dispatchEvent(new Event("resize"))
  }
  size()
  while (nav.children.length > data.length) nav.lastChild.remove()
  data.forEach((one, at) => {
    const link = nav.children[at] ?? nav.appendChild(made())
    link.href = one.to
    link.firstChild.textContent = one.icon
    link.lastChild.textContent = one.name
    if (one.here) link.setAttribute("aria-current", "page")
    else link.removeAttribute("aria-current")
    link.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
      event.preventDefault()
      if (!one.here) turn(new URL(link.href))
    }
  })
}

function turn(to) {
  for (const [name, value] of new URLSearchParams(location.search)) if (name.startsWith("embed")) to.searchParams.append(name, value)
  const asked = new URL(to)
  asked.searchParams.append("menu", "")
  history.pushState({}, "", asked)
  window.dispatchEvent(new PopStateEvent("popstate"))
  history.replaceState({}, "", to)
}

function made() {
  const link = document.createElement("a")
  const icon = document.createElement("span")
  icon.className = "icon"
  icon.setAttribute("aria-hidden", "true")
  link.append(icon, document.createElement("span"))
  return link
}
