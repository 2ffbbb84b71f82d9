// What Streamlit's browser side leaves open: presses on what is being redrawn, typed words, history, focus.
// Imported once for a document, by the scripts of all components (scripts.py).

const BUTTON = "button, a[href], [role=button], label.tick"
const buttonOf = (event) => event.composedPath().find((each) => each.matches?.(BUTTON))

// What a button is known by when it is drawn anew: what it is, and says.
function nameOf(button) {
  const copy = button.cloneNode(true)
  copy.querySelectorAll("[data-testid=stIconMaterial]").forEach((icon) => icon.remove()) // open or closed, it is one button
  const words = copy.textContent.trim() || button.textContent.trim() || button.title
  return `${button.localName} ${button.getAttribute("aria-label") || words}`
}

function cancel(event) {
  event.preventDefault()
  event.stopImmediatePropagation()
}

// The second click of a double click does not press what has come into the place of what the first one pressed.
// Chips of a list may: they are removed one after the other, and the next one comes under the hand.
{
  let first = ""
  addEventListener("click", (event) => {
    const button = buttonOf(event)
    const name = button && !button.closest("[data-testid=stMultiSelect]") ? nameOf(button) : ""
    if (event.isTrusted && event.detail > 1 && name !== first) cancel(event)
    else first = name
  }, true)
}

// A key that is held down presses once.
addEventListener("keydown", (event) => {
  if (event.repeat && (event.key === "Enter" || event.key === " ") && event.composedPath()[0].matches?.(BUTTON)) cancel(event)
}, true)

// The browser makes no click of a press whose button is drawn anew before it is released. So one is made.
{
  let down = null
  addEventListener("pointerdown", (event) => {
    const button = event.isPrimary && !event.button && buttonOf(event)
    down = button ? { button, name: nameOf(button) } : null
  }, true)
  addEventListener("pointerup", (event) => {
    const button = down && !down.button.isConnected && buttonOf(event)
    if (button && nameOf(button) === down.name) button.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, composed: true, detail: 1 }))
    down = null
  }, true)
}

// A tap on a link takes the focus from a field and asks for another page in one moment. Streamlit would send the page first, and
// what was typed after it, for the page that is no longer there. So the link waits.
{
  const WAIT = 100 // ms
  let left = -Infinity // when a field lost the focus
  addEventListener("focusout", ({ target }) => {
    if (target.matches("input, textarea")) left = performance.now()
  }, true)
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]")
    const elsewhere = event.button || event.ctrlKey || event.metaKey || event.shiftKey // in another tab or window
    // By when the hand did it, not by when a busy browser comes to it.
    if (!link || elsewhere || event.timeStamp - left > WAIT) return
    left = -Infinity
    cancel(event)
    const follow = () => link.click()
    setTimeout(() => window.requestIdleCallback?.(follow, { timeout: 1000 }) ?? follow(), WAIT)
  }, true)
}

// Escape closes a dialog, and Streamlit loses what was typed last into one of its fields. So that is sent first.
addEventListener("keydown", (event) => {
  const field = event.composedPath()[0]
  const dialog = field.closest?.("[role=dialog]")
  if (!event.isTrusted || event.key !== "Escape" || event.isComposing) return
  if (!dialog || !field.matches("textarea, input[type=text]:not([role=combobox])")) return
  cancel(event)
  field.blur()
  setTimeout(() => dialog.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true })), 100)
}, true)

// History.
{
  const SECRETS = ["key", "teacher"] // parameters that let somebody in (ui/kit/session/address.py)
  const hasSecret = () => SECRETS.some((name) => new URLSearchParams(location.search).has(name))
  let passing = false // by the browser's Back or Forward, and no hand has done anything on the page since
  let arrived = false // at another page, and no hand has done anything on it since
  addEventListener("popstate", () => {
    passing = true
    arrived = false
    if (!hasSecret()) return
    const address = new URL(location)
    for (const name of SECRETS) address.searchParams.delete(name)
    history.replaceState(history.state, "", address)
  }, true)
  for (const hand of ["pointerdown", "keydown"]) addEventListener(hand, () => { passing = arrived = false }, true)
  const add = history.pushState.bind(history)
  history.pushState = (state, title, address) => {
    if (hasSecret()) return history.replaceState(state, title, address) // Back would bring the key into the address again
    const here = new URL(address, location).pathname === location.pathname
    // Whoever goes back several pages passes some of them before they are drawn. Streamlit would write their addresses down
    // again when they begin, as new entries: there would be no way forward.
    // And a page that was just turned to may have the address of the one before, whose last link came too late, or none yet:
    // the next message puts that right.
    if (passing || (arrived && here)) return here && history.replaceState(state, title, address)
    arrived = !here
    add(state, title, address)
  }
}

// Whoever works by keys stays where they are when what they pressed is drawn anew, or gives way to something else.
{
  const STOPS = "a[href], button, input, select, textarea, summary, [tabindex]"
  const LOOK = 150 // ms between two looks at where the focus is
  const LOOKS = 1 // for what was focused itself, before something beside it is
  let last = null // what was focused: its name, and what stood before it
  let keys = false
  const usable = (each) => each.isConnected && each.tabIndex >= 0 && !each.disabled && each.checkVisibility({ visibilityProperty: true })
  const stops = (root, found = []) => {
    for (const each of root.querySelectorAll("*")) {
      if (each.matches(STOPS) && usable(each)) found.push(each)
      if (each.shadowRoot) stops(each.shadowRoot, found)
    }
    return found
  }
  addEventListener("keydown", () => { keys = true }, true)
  addEventListener("pointerdown", () => { keys = false; last = null }, true)
  addEventListener("focusin", (event) => {
    const target = event.composedPath()[0]
    if (!keys || target === document.body) return
    const all = stops(document.body)
    last = { target, looks: LOOKS, name: nameOf(target), before: all.slice(0, all.indexOf(target)).reverse() }
  }, true)
  setInterval(() => {
    if (!last || document.activeElement !== document.body || usable(last.target)) return
    const all = stops(document.body)
    const same = all.find((each) => nameOf(each) === last.name)
    if (!same && last.looks-- > 0) return // its page is being drawn
    const neighbour = all.indexOf(last.before.find(usable))
    const next = same ?? all[neighbour + 1] ?? all[neighbour]
    last = null
    next?.focus({ preventScroll: true })
  }, LOOK)
}
