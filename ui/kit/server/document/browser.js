// What Streamlit's browser side leaves open between two of its messages. Stands in the document, before anything of Streamlit's.

// What something that can be pressed is known by when it is drawn anew: what it is and says.
const ablationName = (each) => {
  const bare = each.cloneNode(true)
  bare.querySelectorAll("[data-testid=stIconMaterial]").forEach((icon) => icon.remove()) // open or closed, it is one button
  const words = bare.textContent.trim() || each.textContent.trim() || each.title
  return `${each.localName} ${each.getAttribute("aria-label") || words}`
}

// The second press of a double click is meant for what the first one met: what that has become, or what has come into its place,
// is not pressed. Streamlit draws a button anew a moment after it was pressed, often with another one where it was. Where it is
// still there, whatever is beside it may be pressed at once.
{
  const TWICE = 500 // ms
  const NEAR = { touch: 24 } // pixels; of a mouse or a pen 8
  let first = null // the press before: what was pressed, what it said, where and when
  let left = false // out: all of a press, from where it goes down
  // Chips are taken out of a list one after the other, where it is the next one that comes under the hand.
  const pressed = (event) => event.composedPath().find((each) => each.matches?.("button, a[href]") && !each.closest("[data-testid=stMultiSelect]"))
  const says = (each) => each && ablationName(each)
  const under = (x, y) => {
    let each = document.elementFromPoint(x, y)
    for (let inside; (inside = each?.shadowRoot?.elementFromPoint(x, y)) && inside !== each; ) each = inside
    return each?.closest("button, a[href]")
  }
  const byKeys = (event) => event.type === "click" && !event.detail
  let turned = -Infinity // when a press has turned to another page: what is pressed just then was meant for the one before
  addEventListener("ablation-turn", () => { turned = performance.now() })
  // What is drawn by a component of our own may change its name by itself, as play and pause do.
  const isFirst = (each) => each && (says(each) === first.says || (each === first.met && each.getRootNode() !== document))
  const isSecond = (event) => {
    if (!first || byKeys(event) !== first.keys || isFirst(pressed(event))) return false
    const soon = event.timeStamp - first.at <= TWICE
    if (first.keys) return soon
    const near = Math.hypot(event.clientX - first.x, event.clientY - first.y) <= (NEAR[event.pointerType] ?? 8)
    return soon && near && !isFirst(under(first.x, first.y))
  }
  const leaveOut = (event) => {
    event.preventDefault()
    event.stopImmediatePropagation()
  }
  addEventListener("pointerdown", (event) => {
    left = event.isTrusted && (isSecond(event) || event.timeStamp - turned < TWICE)
    if (left) leaveOut(event)
  }, true)
  for (const rest of ["mousedown", "touchstart", "pointerup", "mouseup", "touchend", "dblclick"]) {
    addEventListener(rest, (event) => left && leaveOut(event), { capture: true, passive: false })
  }
  addEventListener("click", (event) => {
    if (!event.isTrusted) return
    if ((left && !byKeys(event)) || isSecond(event)) return leaveOut(event)
    const met = pressed(event)
    first = met ? { met, says: says(met), at: event.timeStamp, x: event.clientX, y: event.clientY, keys: byKeys(event) } : null
  }, true)
  addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") first = null
    else if (event.repeat && event.composedPath()[0].matches?.(PRESSED)) leaveOut(event) // a key that is held presses once
  }, true)

  // A press on what is drawn anew before it is let go: the browser makes no click of it. So one is made.
  const PRESSED = "button, a[href], [role=button], label.tick"
  const met = (event) => event.composedPath().find((each) => each.matches?.(PRESSED))
  let down = null // what a press went down on, and what it said
  let made = -Infinity // when a click was made
  addEventListener("pointerdown", (event) => {
    const one = event.isPrimary && !event.button && met(event)
    down = one ? { one, says: says(one) } : null
  }, true)
  addEventListener("pointerup", (event) => {
    const here = down && !down.one.isConnected && met(event)
    if (here && says(here) === down.says) {
      made = event.timeStamp
      here.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, composed: true, detail: 1 }))
    }
    down = null
  }, true)
  addEventListener("click", (event) => { if (event.isTrusted && !byKeys(event) && event.timeStamp - made < 100) leaveOut(event) }, true)
}

// Escape closes a dialog, and what was typed last into one of its fields is not said then. So it is said first.
addEventListener("keydown", (event) => {
  const field = event.composedPath()[0]
  const dialog = field.closest?.("[role=dialog]")
  if (!event.isTrusted || event.key !== "Escape" || event.isComposing) return
  if (!dialog || !field.matches("textarea, input[type=text]:not([role=combobox])")) return
  event.preventDefault()
  event.stopImmediatePropagation()
  field.blur()
  setTimeout(() => dialog.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true })), 100)
}, true)

// Who works by keys stays where they are when what they pressed is drawn anew, or gives way to something else.
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
    last = { target, looks: LOOKS, name: ablationName(target), before: all.slice(0, all.indexOf(target)).reverse() }
  }, true)
  setInterval(() => {
    if (!last || document.activeElement !== document.body || usable(last.target)) return
    const all = stops(document.body)
    const same = all.find((each) => ablationName(each) === last.name)
    if (!same && last.looks-- > 0) return // its page is being drawn
    const neighbour = all.indexOf(last.before.find(usable))
    const next = same ?? all[neighbour + 1] ?? all[neighbour]
    last = null
    next?.focus({ preventScroll: true })
  }, LOOK)
}
