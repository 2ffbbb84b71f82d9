// Small multiples of lines over passes (or layers, or steps): one panel per question, one line per variant, the sentence
// below. Pointing at one panel (or arrow keys in it) reads all variants at that pass, and marks it in every panel.
// m.at: where on the x axis the values stand. A line may have a band (low, high) and thin lines behind it, one per seed.

const EDGE = { left: 44, right: 48, top: 8, bottom: 34 } // pixels
const SUPER = "⁰¹²³⁴⁵⁶⁷⁸⁹"

function number(value) {
  if (value === null) return "undefined"
  const size = Math.abs(value)
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return scientific(value, 3)
  return (value || 0).toLocaleString("en", { maximumSignificantDigits: 5 }).replace("-", "−")
}

// As in sentences: "7.5 × 10³⁶".
function scientific(value, digits, sign = " × ") {
  const [times, power] = value.toExponential(digits).split("e").map(Number)
  return `${times}${sign}10${String(power).replace("-", "⁻").replace(/\d/g, (d) => SUPER[d])}`.replace("-", "−")
}

// A number in a margin.
function brief(value) {
  if (value == null) return "–"
  const size = Math.abs(value)
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return scientific(value, 1, "·")
  return (Number(value.toPrecision(3)) || 0).toLocaleString("en", { maximumSignificantDigits: 3 }).replace("-", "−")
}

// Which of the positions lies closest.
function nearest(at, x) {
  return at.reduce((best, each, n) => (Math.abs(each - x) < Math.abs(at[best] - x) ? n : best), 0)
}

function label(value) { // a tick at −0 is one at 0
  const size = Math.abs(value)
  if (size === 0 || (size >= 0.00099 && size < 99999)) return (value || 0).toLocaleString("en", { maximumSignificantDigits: 6 }).replace("-", "−")
  return scientific(value, 2, "·").replace(/^(−?)1·/, "$1")
}

function steps(low, high, many) {
  const raw = (high - low) / many || 1
  if (!(high - low > 1e-9 * Math.max(Math.abs(low), Math.abs(high)))) return [low]
  const base = 10 ** Math.floor(Math.log10(raw))
  const step = [1, 2, 2.5, 5, 10].map((n) => n * base).find((n) => n >= raw * 0.999)
  const found = []
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) found.push(n * step)
  return found
}

// Where a value lies between 0 and 1, and the values that get a line and a label.
function axis(values, log, bounds) {
  if (bounds) return { at: (v) => (v - bounds[0]) / (bounds[1] - bounds[0]), ticks: steps(bounds[0], bounds[1], 4) }
  if (!values.length) return { at: () => 0, ticks: [] } // nothing to measure yet
  const positive = values.filter((v) => v > 0)
  if (log) return logarithmic(positive.length ? positive : [1], values.some((v) => v <= 0))
  let [low, high] = [Math.min(...values), Math.max(...values)]
  const size = Math.max(Math.abs(low), Math.abs(high))
  const wide = Math.log10(1 + Math.max(high, 0)) + Math.log10(1 + Math.max(-low, 0))
  if (size > 1e3 && wide - Math.log10(1 + Math.max(low, -high, 0)) > 2) return signed(low, high)
  // What differs by less than a ten-thousandth is drawn as the constant that it is to the eye.
  const room = high - low > 1e-4 * size ? (high - low) * 0.05 : size * 0.1 || 1
  low -= room
  high += room
  return { at: (v) => (v - low) / (high - low), ticks: steps(low, high, 4) }
}

// Zeros have no logarithm: where there are some, they stand a power of ten below everything else.
function logarithmic(positive, zeros) {
  let [a, b] = [Math.log10(Math.min(...positive)), Math.log10(Math.max(...positive))]
  const floor = a - 1
  if (zeros) a = floor
  const room = Math.max((b - a) * 0.05, 0.05 - (b - a) / 2, 0.005)
  a -= room
  b += room
  const at = (v) => ((v > 0 ? Math.log10(v) : floor) - a) / (b - a)
  const inside = (v) => at(v) >= 0 && at(v) <= 1
  const every = Math.max(1, Math.ceil((b - a) / 5))
  let ticks = []
  for (let n = Math.ceil(a / every) * every; n <= b; n += every) ticks.push(10 ** n)
  if (b - a < 2.2)
    ticks = [-3, -2, -1, 0, 1, 2, 3].flatMap((n) => [1, 2, 5].map((m) => m * 10 ** (Math.floor(a) + 1 + n))).filter(inside)
  if (ticks.length < 2) ticks = steps(10 ** a, 10 ** b, 4).filter((v) => v > 0)
  return { at, ticks: ticks.filter(inside), scale: " Log scale." }
}

// Powers of ten to both sides of zero, for what may explode with either sign: linear only between −1 and 1.
function signed(low, high) {
  const squeeze = (v) => Math.sign(v) * Math.log10(1 + Math.abs(v))
  const [a, b] = [squeeze(low), squeeze(high)]
  const room = (b - a) * 0.05
  const every = Math.max(1, Math.ceil((b - a) / 5))
  const ticks = [0]
  for (let n = every; n <= Math.max(b, -a); n += every) ticks.push(10 ** n, -(10 ** n))
  const at = (v) => (squeeze(v) - a + room) / (b - a + 2 * room)
  return { at, ticks: ticks.filter((v) => at(v) >= 0 && at(v) <= 1), scale: " Symmetric log scale." }
}

const escape = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c])

const LOWEST = 110 // pixels of a plot that can be read

const isPresented = () => document.documentElement.hasAttribute("data-present")
// Pixels of the settings at the foot in presentation mode, and of a gap above them (panel.js).
const stripHeight = () => parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--ablation-strip")) + 8

// Taller where there is room, for a projector. In presentation mode all rows share what is left of the screen.
function heightOf(m, root) {
  const panel = root.querySelector(".panel")
  const plot = panel.querySelector(".plot")
  const height = Math.max(m.height, Math.min(300, Math.round(plot.clientWidth * 0.62)))
  if (!isPresented()) return height
  const columns = getComputedStyle(root.firstElementChild).gridTemplateColumns.split(" ").length
  const rows = Math.ceil(m.panels.length / columns)
  const words = Math.max(...[...root.querySelectorAll(".panel")].map((each) => each.offsetHeight)) - plot.offsetHeight
  const scrolled = document.querySelector("[data-testid=stMain]").scrollTop
  const top = root.getBoundingClientRect().top / (root.currentCSSZoom ?? 1) + scrolled
  const room = innerHeight / (root.currentCSSZoom ?? 1) - top - stripHeight()
  return Math.max(Math.min(height, Math.floor(room / rows) - words), LOWEST)
}

function draw(panel, m, width, height) {
  const wide = Math.max(60, width - EDGE.left - EDGE.right)
  const tall = height - EDGE.top - EDGE.bottom
  const known = panel.lines.flatMap((line) => [line.values, ...(line.seeds || [])].flat().filter((v) => v !== null))
  const y = axis(known, panel.log, panel.bounds)
  const across = (at) => EDGE.left + (wide * (at - m.from)) / Math.max(1, m.to - m.from)
  const down = (value) => EDGE.top + tall * (1 - y.at(value))
  const points = (values) => values.map((value, n) => (value === null ? null : [across(m.at[n]), down(value)]))
  const out = []
  for (const tick of y.ticks) {
    const at = down(tick).toFixed(1)
    out.push(`<line class="rule" x1="${EDGE.left}" x2="${EDGE.left + wide}" y1="${at}" y2="${at}"/>`)
    out.push(`<text class="tick" x="${EDGE.left - 6}" y="${at}" dy="0.32em" text-anchor="end">${label(tick)}</text>`)
  }
  const many = Math.min(10, wide / 34)
  const step = [1, 2, 5].flatMap((n) => [n, 10 * n, 100 * n, 1e3 * n, 1e4 * n]).sort((a, b) => a - b).find((n) => n >= (m.to - m.from) / many) || 1e5
  for (let tick = Math.ceil(m.from / step) * step; tick <= m.to; tick += step)
    out.push(`<text class="tick" x="${across(tick).toFixed(1)}" y="${height - EDGE.bottom + 15}" text-anchor="middle">${tick}</text>`)
  out.push(`<text class="tick" x="${EDGE.left + wide / 2}" y="${height - 4}" text-anchor="middle">${escape(m.x)}</text>`)
  for (const { at, name } of panel.marks || []) {
    const x = EDGE.left + wide
    const level = down(at).toFixed(1)
    out.push(`<line class="mark" x1="${EDGE.left}" x2="${x}" y1="${level}" y2="${level}"/>`)
    out.push(`<text class="tick" x="${x}" y="${level}" dy="-4" text-anchor="end">${escape(name)}</text>`)
  }
  const bottom = EDGE.top + tall
  const inside = (v) => (panel.log && v <= 0 ? bottom : Math.max(EDGE.top, Math.min(bottom, down(v))))
  const edge = (values) => values.map((v, n) => (v === null ? null : [across(m.at[n]), inside(v)]))
  for (const line of panel.lines) if (line.low) out.push(band(edge(line.low), edge(line.high), m.colours[line.colour]))
  for (const line of panel.lines) {
    const colour = m.colours[line.colour]
    for (const seed of line.seeds || []) out.push(`<path d="${path(points(seed))}" class="seed" stroke="${colour}"/>`)
  }
  for (const line of panel.lines) {
    const colour = m.colours[line.colour]
    const broad = line.colour === 0 ? 3.4 : 1.8 // a variant on top of the baseline leaves it to be seen
    const found = points(line.values)
    out.push(`<path d="${path(found)}" fill="none" stroke="${colour}" stroke-width="${broad}" stroke-dasharray="${m.dashes[line.colour]}" stroke-linejoin="round"/>`)
    if (line.values.length <= 41)
      for (const point of found)
        if (point)
          out.push(`<circle cx="${point[0].toFixed(1)}" cy="${point[1].toFixed(1)}" r="${broad * 0.62 + 0.9}" fill="${colour}"/>`)
    // where the line breaks off: at its end, or, where the first values are missing (a gradient travels back), at its start;
    // nowhere where it goes all the way, as a mean does of which some seeds are left
    const last = line.values.findLastIndex((v) => v !== null)
    const end = last === line.values.length - 1 ? line.values.findIndex((v) => v !== null) : last
    if (line.ended && last >= 0 && !(end === 0 && last > 0)) {
      const [x, at] = found[end]
      out.push(`<path d="M${x - 5} ${at - 5}l10 10m0 -10l-10 10" stroke="${colour}" stroke-width="3" class="ended"/>`)
    }
  }
  out.push(endLabels(panel, points, EDGE.left + wide))
  return { svg: out.join(""), across, wide, height, scale: y.scale || "" }
}

// The last value of each line, at its end: pushed apart where they would touch.
function endLabels(panel, points, edge) {
  if (panel.lines.some((line) => line.seeds?.length)) return ""
  const ends = panel.lines.map((line) => ({ value: line.values.at(-1), at: points(line.values).at(-1) }))
  const shown = ends.filter(({ at }) => at && at[0] > edge - 1).sort((a, b) => a.at[1] - b.at[1])
  let lowest = -Infinity
  return shown
    .map(({ value, at }) => {
      lowest = Math.max(at[1], lowest + 13)
      return `<text class="value" x="${at[0] + 7}" y="${lowest.toFixed(1)}" dy="0.35em">${brief(value)}</text>`
    })
    .join("")
}

// The path through points [x, y]; where there is none, it starts anew.
function path(points) {
  return points.map((p, n) => (p ? `${n && points[n - 1] ? "L" : "M"}${p[0].toFixed(1)} ${p[1].toFixed(1)}` : "")).join("")
}

function band(low, high, colour) {
  const there = low.map((p, n) => [p, high[n]]).filter(([a, b]) => a && b)
  if (!there.length) return ""
  const round = [...there.map(([a]) => a), ...there.map(([, b]) => b).reverse()]
  return `<path d="${path(round)}Z" class="band" fill="${colour}"/>`
}

function shell(root, m) {
  root.innerHTML = `<div class="panels ${m.panels.length === 1 ? "single" : ""}">${m.panels
    .map(
      (p) => `<div class="panel"><div class="title"></div><div class="label"></div>
<div class="plot"><svg class="picture" role="img" tabindex="0" ><g class="marks"></g><line class="here" y1="${EDGE.top}"/></svg><div class="tip" role="status"></div></div>
<div class="sentence"></div></div>`,
    )
    .join("")}</div>`
}

const observers = new WeakMap()
const moments = new WeakMap() // what listens to a picture that is played

export default function ({ data, parentElement }) {
  const m = JSON.parse(data)
  const root = parentElement.querySelector(".root")
  const key = String(m.panels.length)
  if (root.dataset.key !== key) shell(root, m)
  root.dataset.key = key
  root.firstElementChild.style.setProperty("--least", `${100 / (m.across + 0.6)}%`)
  const panels = [...root.querySelectorAll(".panel")]
  let drawn = []
  const paint = () => {
    root.firstElementChild.classList.toggle("small", isPresented() && panels.length > m.across)
    panels.forEach((element, n) => {
      const panel = m.panels[n]
      const set = (name, text) => {
        const child = element.querySelector(name)
        if (child.textContent !== text) child.textContent = text
      }
      set(".title", panel.label)
      set(".sentence", panel.sentence.replace(/(?<=\d) (?=%)|(?<=[×<=]) (?=\d)/g, "\u00a0")) // one line for a number and its sign
      element.querySelector(".label").title = panel.help
    })
    const height = heightOf(m, root)
    let isRelabelled = false
    drawn = panels.map((element, n) => {
      const panel = m.panels[n]
      const svg = element.querySelector("svg")
      const width = svg.parentElement.clientWidth
      const made = draw(panel, m, width, height)
      const label = element.querySelector(".label")
      if (label.textContent !== panel.title + made.scale) {
        label.textContent = panel.title + made.scale
        isRelabelled = true
      }
      svg.setAttribute("height", made.height)
      svg.querySelector(".here").setAttribute("y2", made.height - EDGE.bottom)
      svg.dataset.width = width
      svg.setAttribute("aria-label", `${panel.label}. ${panel.title}${made.scale} ${panel.sentence}`)
      svg.querySelector(".marks").innerHTML = made.svg
      const legend = panel.lines.map((line) => ({ name: m.names[line.colour], colour: m.colours[line.colour] }))
      svg.about = { ...panel, title: panel.label, label: panel.title + made.scale, legend } // the words of the picture when it is taken away (pictures.js)
      return made
    })
    if (isRelabelled && isPresented()) return paint() // a label of two lines leaves less for the plots
    hide()
    const at = root.pointed // numbers that come while somebody reads a curve leave the readout where it is
    if (at && at.which < panels.length) show(at.which, nearest(m.at, at.x))
  }
  const hide = () => {
    for (const element of panels) {
      element.querySelector(".here").style.display = "none"
      element.querySelector(".tip").style.display = "none"
    }
  }
  const leave = () => {
    root.pointed = null
    hide()
  }
  let here = 0 // which of m.at
  const show = (which, at) => {
    root.pointed = { which, x: m.at[Math.max(0, Math.min(m.at.length - 1, at))] }
    here = Math.max(0, Math.min(m.at.length - 1, at))
    panels.forEach((element, n) => {
      const rule = element.querySelector(".here")
      const x = drawn[n].across(m.at[here])
      rule.setAttribute("x1", x)
      rule.setAttribute("x2", x)
      rule.style.display = "block"
      const tip = element.querySelector(".tip")
      tip.style.display = n === which ? "block" : "none"
      if (n !== which) return
      const rows = m.panels[n].lines.map((line) => {
        const value = line.values[here] ?? null
        const gone = line.ended && here > line.values.findLastIndex((v) => v !== null)
        const low = line.low?.[here] ?? null
        const span = low === null ? "" : ` [${brief(low)}, ${brief(line.high[here])}]`
        const text = value !== null ? (line.low ? brief(value) : number(value)) + span : gone ? line.ended : "–"
        return `<div><span style="color:${m.colours[line.colour]}">●</span> ${escape(m.names[line.colour])} <b>${escape(text)}</b></div>`
      })
      tip.innerHTML = `<div>${escape(m.x)} ${m.at[here]}</div>${rows.join("")}`
      const left = x > drawn[n].wide * 0.55 + EDGE.left
      tip.style.left = left ? "" : `${x + 10}px`
      tip.style.right = left ? `${element.clientWidth - x + 10}px` : ""
    })
  }
  panels.forEach((element, n) => {
    const svg = element.querySelector("svg")
    svg.onpointermove = (event) => {
      const box = svg.getBoundingClientRect()
      const x = (event.clientX - box.left) * (svg.clientWidth / box.width) - EDGE.left // in presentation mode, too
      show(n, nearest(m.at, m.from + (x / drawn[n].wide) * (m.to - m.from)))
    }
    svg.onpointerleave = leave
    svg.onblur = leave
    svg.onkeydown = (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
      if (!move) return
      event.preventDefault()
      show(n, here + move)
    }
  })
  paint()
  observers.get(root)?.disconnect() // else an older call would go on painting what it was given
  const plot = panels[0]?.querySelector(".plot")
  const watch = new ResizeObserver(() => plot && plot.firstElementChild.dataset.width !== String(plot.clientWidth) && paint())
  watch.observe(root)
  observers.set(root, watch)
  window.removeEventListener("ablation-frame", moments.get(root)) // Streamlit ends only what was drawn last
  const moment = ({ detail }) => show(-1, nearest(m.at, detail)) // of a picture that is played (play.js)
  moments.set(root, moment)
  window.addEventListener("ablation-frame", moment)
  window.dispatchEvent(new Event("ablation-frame-asked"))
  return () => {
    watch.disconnect()
    window.removeEventListener("ablation-frame", moment)
  }
}
