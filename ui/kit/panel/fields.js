// What a control is moved with, by its kind. Each sets row.show(control, text), which draws it, and calls row.change(text, held)
// when it is moved; held: whether it is still under the finger. -> the element that is drawn

const AFTER_BLUR = 100 // ms

const FIELDS = {
  range: (row) => slider(row, (control, text) => {
    const steps = (Number(text) - control.low) / control.step
    const between = Math.abs(steps - Math.round(steps)) > 1e-9 // as a link may have it: the browser would show another value
    const max = Number(text) >= control.high ? control.most : control.high // pushed to its end, it opens up, as on the server
    row.text = (value) => String(Number(Number(value).toPrecision(6)))
    row.snap = () => { // the first move goes to the next step in its direction
      const value = Number(row.field.value)
      if (row.field.step !== "any" || value === Number(text)) return
      const to = (value > Number(text) ? Math.ceil : Math.floor)((value - control.low) / control.step)
      row.field.step = control.step
      row.field.value = control.low + to * control.step
    }
    row.write = row.text
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
    row.value.textContent = row.text(field.value)
    field.setAttribute("aria-valuetext", row.value.textContent)
    field.style.setProperty("--share", `${(100 * (field.value - field.min)) / (field.max - field.min || 1)}%`)
  }
  row.value = element("output", {})
  row.show = (control, text) => {
    const bounds = boundsOf(control, text)
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

// Any of a list: the first ones in sight, the others in a sheet, where they are found by their words.
function pills(row) {
  const field = element("div", { className: "pills" })
  const name = element("span", { className: "name" })
  const search = element("input", { type: "search", placeholder: "Find a change …" })
  const list = element("div", { className: "list" })
  const sheet = element("details", { className: "more" }, element("summary", { textContent: "More …" }), element("div", { className: "sheet" }, search, list))
  let chosen = new Set()
  let later = () => {} // once what is offered is drawn anew
  search.setAttribute("aria-label", "Find a change")
  const find = search.oninput = () => {
    const wanted = search.value.toLowerCase().split(/\s+/)
    for (const each of list.children) each.hidden = !wanted.every((word) => each.textContent.toLowerCase().includes(word))
  }
  sheet.onkeydown = (event) => {
    if (event.key !== "Escape") return
    sheet.open = false
    sheet.firstChild.focus()
  }
  search.onkeydown = (event) => { // one that is left need not be pointed at
    const left = [...list.children].filter((each) => !each.hidden)
    if (event.key !== "Enter" || left.length !== 1) return
    left[0].firstChild.click()
    search.select() // the next word takes the place of this one
  }
  const turn = (value, isOn) => {
    if (isOn) chosen.add(value)
    else chosen.delete(value)
    mark()
    fit(field)
    stay()
    store.change({ [`${row.control.set}/${value}`]: isOn ? "on" : "off" })
  }
  const one = ([value, label]) => ticked("checkbox", label, undefined, { value, onchange: (event) => turn(value, event.target.checked) })
  const mark = () => {
    for (const input of field.querySelectorAll("input[type=checkbox]")) {
      input.checked = chosen.has(input.value)
      if (!input.dataset.found) continue
      if (!input.checked && input.matches(":focus")) sheet.firstChild.focus() // it goes, and the keys stay beside it
      input.parentElement.hidden = !input.checked
    }
  }
  let width = 0
  new ResizeObserver(() => { if (width !== (width = field.offsetWidth)) fit(field) }).observe(field)
  const elsewhere = (event) => { if (!event.composedPath().includes(sheet)) sheet.open = false }
  sheet.ontoggle = () => {
    (sheet.open ? document.addEventListener : document.removeEventListener).call(document, "pointerdown", elsewhere)
    if (!sheet.open) return
    sheet.lastChild.style.translate = ""
    const over = sheet.lastChild.getBoundingClientRect().right + 12 - document.documentElement.clientWidth
    if (over > 0) sheet.lastChild.style.translate = `${-over}px`
    at = corner()
    search.focus({ preventScroll: true })
  }
  // While it is open it stays where it is, though what is chosen in it pushes the word that opens it aside.
  let at
  const corner = () => {
    const [box, its] = [field, sheet.lastChild].map((each) => each.getBoundingClientRect())
    return [its.left - box.left, its.top - box.top]
  }
  const stay = () => {
    if (!sheet.open || !at || getComputedStyle(sheet.lastChild).position === "fixed") return
    sheet.lastChild.style.translate = ""
    const now = corner()
    sheet.lastChild.style.translate = `${at[0] - now[0]}px ${at[1] - now[1]}px`
  }
  row.show = (now) => {
    const isChosen = ([value]) => {
      const pending = store.chosen(`${now.set}/${value}`)
      return pending ? pending === "on" : now.value.includes(value)
    }
    const wanted = now.options.filter(isChosen).map(([value]) => value)
    field.setAttribute("role", "group")
    field.setAttribute("aria-label", now.label)
    name.textContent = now.label
    const anew = isNew(row, now)
    const others = anew || String(wanted) !== String([...chosen])
    if (anew) {
      const held = field.contains(document.activeElement) ? document.activeElement.parentElement.textContent : undefined
      const shown = now.options.map(one)
      for (const each of shown.slice(now.first)) each.firstChild.dataset.found = true
      list.replaceChildren(...now.options.map(one))
      find()
      later = () => {
        const again = [...field.querySelectorAll(".tick:not([hidden])")].find((each) => each.textContent === held)
        if (held !== undefined) (again?.firstChild ?? sheet.firstChild).focus()
      }
      field.replaceChildren(name, ...shown, ...(shown.length > now.first ? [sheet] : []))
    }
    chosen = new Set(wanted)
    mark()
    if (others) fit(field) // it has the browser lay the page out: not with every move of something else
    inSight(field)
    later()
    later = () => {}
    stay()
  }
  return field
}

// What was found and is chosen has its place among the others, and not in a line of its own: what stands below would move away
// from whoever is about to press it. Of those that are not chosen the last ones make room; the list has them, too.
function fit(field) {
  const ticks = [...field.querySelectorAll(":scope > .tick:not([hidden])")]
  const found = ticks.filter((each) => each.firstChild.dataset.found)
  const away = (those, is) => those.forEach((each) => each.classList.toggle("away", is))
  away(ticks, false)
  if (!found.length) return
  away(found, true)
  const height = field.offsetHeight
  away(found, false)
  const free = ticks.filter((each) => !each.firstChild.checked && !each.matches(":focus-within"))
  while (field.offsetHeight > height && free.length) away([free.pop()], true)
}

// In a row that is wider than the screen, what is chosen is in sight.
function inSight(field) {
  const on = field.querySelector(":checked")?.parentElement
  const now = on?.textContent
  if (!on || field.sighted === now || field.scrollWidth <= field.clientWidth) return
  field.sighted = now
  const [box, its] = [field, on].map((each) => each.getBoundingClientRect())
  if (its.left < box.left || its.right > box.right) field.scrollLeft += its.left - box.left - 40
}

function ticked(type, text, title, fields) {
  return element("label", { className: "tick", title: title ?? "" }, element("input", { type, ...fields }), element("span", { textContent: text }))
}

// Whether other things are offered than were drawn.
function isNew(row, one) {
  const words = JSON.stringify([one.options, one.first])
  const is = row.words !== words
  row.words = words
  return is
}
