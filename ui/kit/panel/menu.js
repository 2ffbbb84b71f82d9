// The menu of pages. A plain click turns to a page (store.js), any other is the browser's own.

const LARGE = "ablation-presenter" // kept by the browser, for all pages

let large = false
let present = false // where the browser keeps nothing, as in the frame of a learning platform: as long as the page is open

function isPresenting() {
  try { return localStorage.getItem(LARGE) === "on" } catch { return present }
}

function setPresenting(is) {
  present = is
  try { localStorage.setItem(LARGE, is ? "on" : "off") } catch { /* a browser may forbid it */ }
}

export default function ({ data, parentElement }) {
  const [nav, presenter, link] = parentElement.querySelector(".ablation-menu").children
  link.onclick = () => copy(link.lastChild)
  const size = () => {
    const is = isPresenting()
    document.documentElement.style.setProperty("--ablation-zoom", is ? (innerWidth < 1400 ? 1.2 : 1.35) : 1) // of a small projector, no more than leaves room for a picture
    presenter.setAttribute("aria-pressed", is)
  }
  presenter.onclick = () => {
    setPresenting(!isPresenting())
    size()
    window.dispatchEvent(new Event("resize"))
  }
  if (data[0]?.large && !large) { // as a teacher's link asks, once
    large = true
    setPresenting(true)
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
      if (matchMedia("(max-width: 768px)").matches) document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click()
      if (!one.here) turnTo(link.href, {})
    }
  })
}

async function copy(words) {
  let copied
  try {
    await navigator.clipboard.writeText(location.href)
    copied = true
  } catch { // without https, as on most servers in a classroom, or not allowed
    copied = selected(location.href)
  }
  words.textContent = copied ? "Copied" : "It stands in the address bar"
  setTimeout(() => { words.textContent = "Copy link" }, 2500)
}

// What browsers still do without https, with a text that is selected.
function selected(text) {
  const field = Object.assign(document.createElement("textarea"), { value: text, readOnly: true })
  field.style.cssText = "position: fixed; opacity: 0"
  const focused = document.activeElement
  document.body.append(field)
  field.select()
  const is = document.execCommand("copy")
  field.remove()
  focused?.focus({ preventScroll: true })
  return is
}

function made() {
  const link = document.createElement("a")
  const icon = document.createElement("span")
  icon.className = "icon"
  icon.setAttribute("aria-hidden", "true")
  link.append(icon, document.createElement("span"))
  return link
}
