// The menu of pages. A plain click turns to a page (store.js), any other is the browser's own.

const LAYER = "[data-name=layer] select"
const TABS = ".underlined .tick input"

function present(is) {
  store.presents = is
  drawPresentation()
  store.writeLink()
  store.redraw() // rows of buttons become menus
  window.dispatchEvent(new Event("resize"))
}

function drawPresentation() {
  document.documentElement.toggleAttribute("data-present", store.presents && innerWidth > 768) // a phone is no projector
  document.querySelector(".ablation-menu .present")?.setAttribute("aria-pressed", store.presents)
}

// F enters presentation mode and Escape leaves it; there 1 to 6 open a tab, and the arrows change the layer.
function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
  if (event.composedPath()[0].matches?.("input:not([type=range], [type=radio], [type=checkbox]), textarea, select, [contenteditable]")) return
  if (event.key === "f" || event.key === "F") return present(!store.presents)
  if (!store.presents) return
  const isOpen = document.querySelector(".more[open], [data-testid=stPopoverBody], [role=dialog]")
  if (event.key === "Escape" && !isOpen) present(false)
  if (/^[1-6]$/.test(event.key)) document.querySelectorAll(TABS)[event.key - 1]?.click()
  const isFree = event.composedPath()[0] === document.body // a slider, a map or a row of buttons has the arrows for itself
  if (isFree && ["ArrowLeft", "ArrowRight"].includes(event.key)) changeLayer(event.key === "ArrowRight" ? 1 : -1)
}

function changeLayer(by) {
  const field = document.querySelector(LAYER)
  const at = field ? field.selectedIndex + by : -1
  if (at < 0 || at >= field.options.length) return
  field.selectedIndex = at
  field.dispatchEvent(new Event("change"))
}

export default function ({ data, parentElement }) {
  const [nav, presentation, link] = parentElement.querySelector(".ablation-menu").children
  link.onclick = () => copy(link.lastChild)
  presentation.onclick = () => present(!store.presents)
  if (!store.hasKeys) {
    store.hasKeys = true
    addEventListener("keydown", onKey)
    addEventListener("resize", drawPresentation)
    if (data[0]?.large) store.presents = true // as a teacher's link asks, once
  }
  drawPresentation()
  while (nav.children.length > data.length) nav.lastChild.remove()
  data.forEach((one, at) => {
    const link = nav.children[at] ?? nav.appendChild(made())
    link.href = one.to
    link.firstChild.textContent = one.icon
    link.lastChild.textContent = link.title = one.name
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
  const button = words.parentElement
  const show = (text, isDone) => { words.textContent = text; button.classList.toggle("copied", isDone) }
  show(copied ? "Copied" : "Copy it from the address bar", true)
  setTimeout(() => show("Copy link", false), 2500)
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
