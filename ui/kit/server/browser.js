// What Streamlit's browser side leaves open: presses on what is being redrawn, typed words, focus.
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

// Escape closes a dialog, and Streamlit loses what was typed last into one of its fields. So that is sent first.
{
  const TEXT = "textarea, input[type=text]:not([role=combobox])"
  let atFirst = "" // the value of the field that has the focus, as it was when it got it
  addEventListener("focusin", (event) => { atFirst = event.composedPath()[0].value }, true)
  addEventListener("keydown", (event) => {
    const field = event.composedPath()[0]
    const dialog = field.closest?.("[role=dialog]")
    if (!event.isTrusted || event.key !== "Escape" || event.isComposing) return
    if (!dialog || !field.matches(TEXT)) return
    cancel(event)
    const isTyped = field.value !== atFirst
    let isSent = !isTyped
    field.blur()
    // Streamlit drops the value of a field that is gone before the run that takes it over has begun.
    const app = document.querySelector("[data-testid=stApp]")
    const close = () => dialog.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true }))
    let quiet = 0 // ms since the last run: the one that has the text may come after another
    const wait = (left) => {
      const isRunning = app?.dataset.testScriptState === "running"
      isSent ||= isRunning
      quiet = isRunning ? 0 : quiet + 20
      if (left > 0 && (!isSent || (isTyped && quiet < 200))) setTimeout(wait, 20, left - 20)
      else close()
    }
    wait(3000)
  }, true)
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
