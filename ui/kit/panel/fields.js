// What a control is moved with, by its kind. Each sets row.read(), what is said of it, and row.show(one), how it is drawn;
// tell(held) says that it was moved, and whether it is still under the finger. -> the element that is drawn

const FIELDS = {
  range: (id, row, tell) => slider(id, row, tell, (one) => {
    const steps = (one.value - one.low) / one.step
    const between = Math.abs(steps - Math.round(steps)) > 1e-9 // as a link may have it: the browser would show another value
    row.field.min = one.low; row.field.max = one.high; row.most = one.most; row.field.step = between ? "any" : one.step
    row.text = (value) => String(Number(value.toPrecision(6)))
    row.snap = () => { // the first move goes to the next step in its direction
      const value = Number(row.field.value)
      if (row.field.step !== "any" || value === one.value) return
      const to = (value > one.value ? Math.ceil : Math.floor)((value - one.low) / one.step)
      row.field.step = one.step
      row.field.value = one.low + to * one.step
    }
  }),
  stops: (id, row, tell) => slider(id, row, tell, (one) => {
    row.field.min = 0; row.field.max = one.options.length - 1; row.field.step = 1
    row.text = (value) => one.options[value] ?? ""
  }),
  switch: (id, row, tell) => {
    const field = element("input", { type: "checkbox", id, onchange: () => tell(false) })
    field.setAttribute("role", "switch")
    row.read = () => field.checked
    row.show = (one) => { field.checked = one.value }
    return field
  },
  choice: (id, row, tell) => {
    const field = element("select", { id, onchange: () => tell(false) })
    row.read = () => Number(field.value)
    row.show = (one) => {
      if (isNew(row, one)) field.replaceChildren(...one.options.map((textContent, value) => element("option", { textContent, value })))
      field.value = one.value
    }
    return field
  },
  tabs: (id, row, tell) => {
    const field = element("div", { className: "tabs" })
    field.setAttribute("role", "radiogroup")
    row.read = () => Number(field.querySelector("input:checked").value)
    row.show = (one) => {
      field.setAttribute("aria-label", one.label)
      if (isNew(row, one)) {
        field.replaceChildren(...one.options.map((text, value) => ticked("radio", text, one.about?.[value], { name: id, value, onchange: () => tell(false) })))
      }
      field.children[one.value].firstChild.checked = true
      inSight(field)
      requestAnimationFrame(() => inSight(field)) // at first it has no place yet
    }
    return field
  },
  pills: (id, row, tell) => pills(row, tell),
  text: (id, row, tell) => {
    const field = element("input", { type: "text", id, autocomplete: "off" })
    let typing = false // what is typed and not yet said stays, whatever else is moved meanwhile
    const typed = (is) => { typing = is; row.box?.classList.toggle("typing", is) } // that Enter is waited for is said beside it
    const said = () => { if (typing) { typed(false); tell(false) } }
    field.oninput = () => typed(true)
    field.onchange = said
    field.onkeydown = (event) => { if (event.key === "Enter") said() }
    row.read = () => field.value
    row.append = (word) => { // behind what stands there, typed or not yet said
      field.value = `${field.value.trimEnd()} ${word}`.trimStart()
      field.scrollLeft = field.scrollWidth
      typed(false)
      tell(false)
    }
    row.show = (one, fresh) => {
      field.placeholder = one.hint
      field.maxLength = one.most
      if (fresh && document.activeElement !== field) typed(false) // what a page had under way as somebody began to type takes no word away
      if (!typing) field.value = one.value
    }
    return field
  },
}

function slider(id, row, tell, bounds) {
  const field = element("input", { type: "range", id })
  const write = () => {
    row.value.textContent = row.text(row.read())
    field.setAttribute("aria-valuetext", row.value.textContent)
    field.style.setProperty("--share", `${(100 * (field.value - field.min)) / (field.max - field.min || 1)}%`)
  }
  row.value = element("output", {})
  row.read = () => Number(field.value)
  row.show = (one) => { bounds(one); field.value = one.value; write() }
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
    if (row.most > field.max && field.value === field.max) field.max = row.most // keys go on at once; the server opens it up, too
    write()
    tell(false)
  }
  return field
}

// Any of a list: the first ones in sight, the others in a sheet, where they are found by their words.
function pills(row, tell) {
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
  const turned = (value, is) => { is ? chosen.add(value) : chosen.delete(value); mark(); fit(field); stay(); tell(false) }
  const one = (text, value) => ticked("checkbox", text, undefined, { value, onchange: (event) => turned(value, event.target.checked) })
  const mark = () => {
    for (const input of field.querySelectorAll("input[type=checkbox]")) {
      input.checked = chosen.has(Number(input.value))
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
  row.read = () => [...chosen]
  row.show = (now) => {
    field.setAttribute("role", "group")
    field.setAttribute("aria-label", now.label)
    name.textContent = now.label
    const anew = isNew(row, now), others = anew || String(now.value) !== String([...chosen])
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
    chosen = new Set(now.value)
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
