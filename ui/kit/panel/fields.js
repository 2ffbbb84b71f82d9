// What a control is moved with, by its kind. Each sets row.show(control, text), which draws it, and calls row.change(text, held)
// when it is moved; held: whether it is still under the finger. -> the element that is drawn

const AFTER_BLUR = 100 // ms

const FIELDS = {
  range: (row) => slider(row, (control, text) => {
    const steps = (Number(text) - control.low) / control.step
    const between = Math.abs(steps - Math.round(steps)) > 1e-9 // as a link may have it: the browser would show another value
    const max = Number(text) >= control.high ? control.most : control.high // pushed to its end, it opens up, as on the server
    row.text = (value) => Number(value).toLocaleString("en", { maximumSignificantDigits: 6 })
    row.snap = () => { // the first move goes to the next step in its direction
      const value = Number(row.field.value)
      if (row.field.step !== "any" || value === Number(text)) return
      const to = (value > Number(text) ? Math.ceil : Math.floor)((value - control.low) / control.step)
      row.field.step = control.step
      row.field.value = control.low + to * control.step
    }
    row.write = (value) => String(Number(Number(value).toPrecision(6)))
    return { min: control.low, max, step: between ? "any" : control.step, value: Number(text) }
  }),
  stops: (row) => slider(row, (control, text) => {
    row.text = (at) => control.options[at]?.[1] ?? ""
    row.write = (at) => control.options[at][0]
    return { min: 0, max: control.options.length - 1, step: 1, value: Math.max(0, indexOf(control, text)) }
  }),
  switch: (row) => {
    const field = element("input", { type: "checkbox", id: row.id, onchange: () => row.change(field.checked ? "on" : "off") })
    field.setAttribute("role", "switch")
    row.show = (control, text) => { field.checked = text === "on" }
    return field
  },
  choice: (row) => {
    const field = element("select", { id: row.id, onchange: () => row.change(field.value) })
    row.show = (control, text) => {
      if (isNew(row, control)) field.replaceChildren(...control.options.map(([value, textContent]) => element("option", { value, textContent })))
      field.value = text
    }
    return field
  },
  tabs: (row) => {
    const field = element("div", { className: "tabs" })
    field.setAttribute("role", "radiogroup")
    row.show = (control, text) => {
      field.setAttribute("aria-label", control.label)
      if (isNew(row, control)) {
        field.replaceChildren(...control.options.map(([value, label], at) => ticked("radio", label, control.about?.[at], { name: row.id, value, onchange: () => row.change(value) })))
      }
      const chosen = field.children[indexOf(control, text)]
      if (chosen) chosen.firstChild.checked = true
      inSight(field)
      requestAnimationFrame(() => inSight(field)) // at first it has no place yet
    }
    return field
  },
  pills: (row) => pills(row),
  text: (row) => {
    const field = element("input", { type: "text", id: row.id, autocomplete: "off" })
    let typing = false // what is typed and not yet sent stays, whatever else is moved meanwhile
    let shown = ""
    const setTyping = (is) => { typing = is; row.box?.classList.toggle("typing", is) } // that Enter is waited for is said beside it
    const send = () => {
      if (!typing) return
      setTyping(false)
      row.change(field.value)
    }
    field.oninput = () => setTyping(true)
    // The press that takes the focus away may ask for another page: then the text is sent by that page.
    field.onchange = () => setTimeout(send, AFTER_BLUR)
    field.onkeydown = (event) => { if (event.key === "Enter") send() }
    row.append = (word) => { // behind what stands there, typed or not yet sent
      field.value = `${field.value.trimEnd()} ${word}`.trimStart()
      field.scrollLeft = field.scrollWidth
      setTyping(true)
      send()
    }
    row.show = (control, text) => {
      field.placeholder = control.hint
      field.maxLength = control.most
      if (text !== shown && document.activeElement !== field) setTyping(false) // another text came, and nobody types any more
      shown = text
      if (!typing && field.value !== text) field.value = text
    }
    return field
  },
}

const indexOf = (control, text) => control.options.findIndex(([value]) => value === text)

function slider(row, boundsOf) {
  const field = element("input", { type: "range", id: row.id })
  const tell = (held) => row.change(row.write(field.value), held)
  const write = () => {
    update(row.value, { textContent: row.text(field.value) })
    field.setAttribute("aria-valuetext", row.value.textContent)
    field.style.setProperty("--share", `${(100 * (field.value - field.min)) / (field.max - field.min || 1)}%`)
  }
  row.value = element("output", {})
  row.show = (control, text) => {
    const bounds = boundsOf(control, text)
    update(field, { disabled: Boolean(control.off) })
    row.box.classList.toggle("off", field.disabled)
    if (down) return // what is under the finger stays
    for (const name of ["min", "max", "step"]) if (field[name] !== String(bounds[name])) field[name] = bounds[name]
    if (Number(field.value) !== bounds.value) field.value = bounds.value
    write()
  }
  // A key changes it at once, and there is nothing to hold. A finger that comes down on it may be about to scroll the page: the
  // browser moves the slider all the same, and tells only then (pointercancel). So a finger has moved it once it goes sideways,
  // or is lifted.
  const SIDEWAYS = 8 // pixels
  let down = null // where a pointer came down, what the slider was then, and whether it may still scroll
  let scrolled = null // what the slider was before a finger scrolled the page on it
  const hold = () => { row.snap?.(); write(); if (down && !down.may) tell(true) }
  field.onpointerdown = (event) => {
    down = { x: event.clientX, value: field.value, may: event.pointerType === "touch" }
    scrolled = null
  }
  field.onpointermove = (event) => {
    if (!down?.may || Math.abs(event.clientX - down.x) < SIDEWAYS) return
    down.may = false
    if (field.value !== down.value) hold()
  }
  field.onpointerup = () => {
    const back = down && !down.may && field.value === down.value // to where it was, of which the browser tells no change
    down = null
    if (back) tell(false)
  }
  field.onpointercancel = () => {
    if (down?.may) { field.value = scrolled = down.value; write() }
    down = null
  }
  field.onkeydown = () => { scrolled = null }
  field.oninput = () => { if (scrolled === null) hold() }
  field.onchange = () => { // a pointer may be let go elsewhere
    down = null
    if (scrolled !== null) { field.value = scrolled; scrolled = null; return write() }
    row.snap?.()
    write()
    tell(false)
  }
  return field
}

// Any of a list: a menu with a search, and what is chosen as chips before it, where a click removes it.
function pills(row) {
  const field = element("div", { className: "pills" })
  const chips = element("div", { className: "chips" })
  const summary = element("summary", {})
  const search = element("input", { type: "search" })
  const list = element("div", { className: "list" })
  const sheet = element("details", { className: "more" }, summary, element("div", { className: "sheet" }, search, list))
  let chosen = new Set()
  field.append(chips, sheet)
  const find = search.oninput = () => {
    const words = search.value.toLowerCase().split(/\s+/)
    for (const tick of list.children) {
      const text = `${tick.textContent} ${tick.title}`.toLowerCase()
      tick.hidden = !words.every((word) => text.includes(word))
    }
  }
  const close = () => {
    sheet.open = false
    summary.focus()
  }
  sheet.onkeydown = (event) => {
    if (event.key !== "Escape") return
    event.preventDefault() // so that presentation mode stays (menu.js)
    close()
  }
  search.onkeydown = (event) => { // the only one that is found need not be clicked
    const found = [...list.children].filter((tick) => !tick.hidden)
    if (event.key !== "Enter" || found.length !== 1) return
    found[0].firstChild.click()
    search.select() // the next word takes the place of this one
  }
  const closeElsewhere = (event) => { if (!event.composedPath().includes(sheet)) sheet.open = false }
  sheet.ontoggle = () => {
    (sheet.open ? document.addEventListener : document.removeEventListener).call(document, "pointerdown", closeElsewhere)
    if (sheet.open) search.focus({ preventScroll: true })
  }
  const turn = (value, isOn) => {
    if (isOn) chosen.add(value)
    else chosen.delete(value)
    mark()
    store.change({ [`${row.control.set}/${value}`]: isOn ? "on" : "off" })
  }
  const chip = ([value, label]) => {
    const button = element("button", { type: "button", className: "chip", value, textContent: label, onclick: () => turn(value, false) })
    button.setAttribute("aria-label", `Remove ${label}`)
    return button
  }
  const mark = () => {
    for (const tick of list.children) tick.firstChild.checked = chosen.has(tick.firstChild.value)
    for (const button of chips.children) {
      const isGone = !chosen.has(button.value)
      if (isGone && button.matches(":focus")) summary.focus()
      update(button, { hidden: isGone })
      button.style.setProperty("--colour", row.control.colours[button.value] ?? "currentcolor")
    }
    update(chips, { hidden: !chosen.size })
  }
  // In the order of the legend.
  const sortChips = (values) => {
    const rank = (button) => (values.includes(button.value) ? values.indexOf(button.value) : values.length)
    const sorted = [...chips.children].sort((one, other) => rank(one) - rank(other))
    if (sorted.every((button, at) => button === chips.children[at])) return
    const focused = chips.querySelector(":focus")
    chips.append(...sorted)
    focused?.focus()
  }
  row.show = (now) => {
    const isChosen = ([value]) => {
      const pending = store.chosen(`${now.set}/${value}`)
      return pending ? pending === "on" : now.value.includes(value)
    }
    field.setAttribute("role", "group")
    field.setAttribute("aria-label", now.label)
    update(summary, { textContent: now.label })
    update(search, { placeholder: now.hint })
    search.setAttribute("aria-label", now.hint)
    if (isNew(row, now)) {
      const focused = field.contains(document.activeElement) ? document.activeElement.value : undefined
      list.replaceChildren(...now.options.map(([value, label], at) => ticked("checkbox", label, now.titles[at], { value, onchange: (event) => turn(value, event.target.checked) })))
      chips.replaceChildren(...now.options.map(chip))
      find()
      if (focused !== undefined && document.activeElement === document.body) ([...list.querySelectorAll("input")].find((input) => input.value === focused) ?? summary).focus()
    }
    chosen = new Set(now.options.filter(isChosen).map(([value]) => value))
    mark()
    sortChips(now.value)
  }
  return field
}

// In a row that is wider than the screen, what is chosen is in sight.
function inSight(field) {
  const on = field.querySelector(":checked")?.parentElement
  const now = on?.textContent
  if (!on || field.sighted === now || !field.clientWidth) return
  field.sighted = now
  if (field.scrollWidth <= field.clientWidth) return
  const [box, its] = [field, on].map((each) => each.getBoundingClientRect())
  if (its.left < box.left || its.right > box.right) field.scrollLeft += its.left - box.left - 40
}

function ticked(type, text, title, fields) {
  const words = element("span", { textContent: text })
  words.dataset.text = text // for the room of its bold letters (panel.css)
  return element("label", { className: "tick", title: title ?? "" }, element("input", { type, ...fields }), words)
}

// Whether other things are offered than were drawn.
function isNew(row, one) {
  const words = JSON.stringify(one.options)
  const is = row.words !== words
  row.words = words
  return is
}
