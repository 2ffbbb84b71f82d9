// Attention maps and other matrices of one shape as heat maps on a canvas: colours, words, hover, click, arrow keys.

const TYPE = 12 // pixels: of all words and numbers

const LINE = TYPE + 2 // pixels of a line

const longest = (words, perLetter) => perLetter * Math.max(...words.map((word) => word.length))

const SLANTED = 1.5 * TYPE // pixels of a column from which on slanted words do not touch
const WORD = TYPE - 2 // pixels of a row or a column that has room for its word

// How large cells are with so many panels to a row, where words have a place to the left, and above.
function fitCells(m, width, height, across, hasRowWords, hasColWords) {
  const down = Math.ceil(m.panels / across)
  const most = m.square ? 112 : Math.min(260, Math.max(120, 0.4 * width))
  const left = hasRowWords ? Math.min(most, 14 + longest(m.rowWords, 6.8)) : 4
  const head = hasColWords ? Math.min(m.square ? 92 : 120, 14 + longest(m.colWords, 6)) : 0
  const top = m.titles && !m.corner ? 20 : 4
  const gap = across > 1 ? 10 : 0
  const cellWidth = (room) => (room - left - 4 - gap * (across - 1)) / across / m.cols
  let cellW = cellWidth(width)
  // Slanted words of the last columns reach beyond the matrix.
  const reach = (word, col) => 0.5 * Math.min(head, 10 + longest([word], 6)) - (m.cols - 1 - col) * cellW
  const needed = hasColWords ? Math.max(0, ...m.colWords.map(reach)) : 0
  const beyond = cellWidth(width - needed) >= SLANTED ? needed : 0
  cellW = cellWidth(width - beyond)
  let cellH = (height - head) / down / m.rows - (top + 4) / m.rows
  if (m.square) cellW = cellH = Math.min(cellW, cellH)
  cellW = Math.min(cellW, m.square ? 44 : 84)
  cellH = Math.min(cellH, 44)
  const isTitleCut = m.titles && longest(m.titles, 6.8) > (m.corner ? (m.cols - 2.5) * cellW : m.cols * cellW + gap)
  const score = Math.min(cellW, cellH * (m.square ? 1 : 4)) * (isTitleCut ? 0.6 : 1)
  const hasRoom = (!hasRowWords || cellH >= WORD) && (!hasColWords || cellW >= WORD)
  return { score, across, down, left, head, top, gap, cellW, cellH, beyond, hasRowWords, hasColWords, hasRoom }
}

// How many panels to a row, and how large: as large as the width and the height at hand allow. Words stand once, left
// of each row of panels and above each column of them: all of them, or none where there is no room.
function arrange(m, width, height) {
  let best = null
  for (let across = m.across || 1; across <= (m.across || m.panels); across++) {
    // With all words, with those of the rows, or with none.
    const tries = [[true, Boolean(m.colWords)], [true, false], [false, false]].map((words) => fitCells(m, width, height, across, ...words))
    const fitted = tries.find((a) => a.hasRoom)
    if (!best || fitted.score > best.score) best = fitted
  }
  best.stepX = best.cellW * m.cols + best.gap
  best.stepY = best.cellH * m.rows + best.top + 4
  best.isUpright = best.cellW < SLANTED // words along the column
  if (best.isUpright) best.beyond = 0
  best.width = Math.min(width, Math.ceil(best.left + best.across * best.stepX + best.beyond + 4))
  best.height = Math.ceil(best.head + best.stepY * best.down + 4)
  return best
}

// pointed: the cell, row or column at which a mouse or the arrow keys point; without one, the cell that the page names.
function paint(canvas, m, theme, pointed = null) {
  const a = draw(canvas, m, theme, widthFor(canvas), screenScale(canvas), heightFor(canvas, m), pointed ?? m.ring)
  canvas.style.width = a.width + "px"
  canvas.style.height = a.height + "px"
  canvas.dataset.layout = JSON.stringify(a) // where each panel lies, for whoever wants to check pixels against numbers
  return a
}

const SCALE = 112 // pixels of the scale beside a picture, and of the gap (heatmaps.py)

// The width that a picture may take: what the scale leaves.
function widthFor(canvas) {
  const layout = canvas.closest(".layout")
  return layout.clientWidth - (layout.classList.contains("beside") ? SCALE : 0)
}

const FINDING = 28 // pixels of the sentence below a picture

// The height that a picture may take: in presentation mode what is left between its controls and the settings at the foot.
function heightFor(canvas, m) {
  if (!store.presents) return m.height
  const zoom = canvas.currentCSSZoom ?? 1
  const left = (innerHeight - canvas.getBoundingClientRect().top) / zoom
  const strip = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--ablation-strip"))
  return Math.max(250, Math.min(left - strip - FINDING, m.height))
}

// On any canvas, which becomes so wide. scale: pixels of the screen in one of the page.
function draw(canvas, m, theme, width, scale, height = m.height, pointed = null) {
  const a = arrange(m, width, height)
  const ink = sharp(canvas, a.width, a.height, scale)
  ink.imageSmoothingEnabled = false
  drawPanels(ink, m, a, theme, pointed)
  return a
}

// The same as an SVG, with its scale above it.
function asSvg(m, a, theme, width) {
  const ink = new SvgInk(width, a.height + 52, theme.background)
  ink.font = `600 13px ${theme.font}`
  ink.fillStyle = theme.text
  ink.textAlign = "left"
  ink.fillText(m.alt, 4, 14)
  ink.out.push('<g transform="translate(0 22)">')
  ink.font = `12px ${theme.font}`
  ink.fillText(m.what, 4, 14)
  const from = 16 + 6.2 * m.what.length
  ink.fillText(end(m, 0), from, 14)
  m.stops.forEach((stop, n) => ink.out.push(`<rect x="${from + 60 + 10 * n}" y="8" width="10.5" height="11" fill="${stop}"/>`))
  ink.fillText(end(m, 1), from + 68 + 10 * m.stops.length, 14)
  ink.out.push('</g><g transform="translate(0 52)">')
  drawPanels(ink, m, a, theme, m.ring)
  ink.out.push("</g>")
  return ink.done()
}

// Draw a ring around a cell, a row (col −1) or a column (row −1) of the panel that begins at x, y.
function drawRing(ink, m, a, theme, { row, col }, x, y) {
  const [left, across] = col < 0 ? [0, m.cols] : [col, 1]
  const [top, down] = row < 0 ? [0, m.rows] : [row, 1]
  const box = [x + left * a.cellW, y + top * a.cellH, across * a.cellW, down * a.cellH]
  for (const [colour, width] of [[theme.background, 5], [theme.text, 2]]) {
    ink.strokeStyle = colour
    ink.lineWidth = width
    ink.strokeRect(...box)
  }
}

// Break a text that is too wide into two lines, after a dot between two names.
function halve(ink, text, width) {
  const names = text.split(" · ")
  if (ink.measureText(text).width <= width || names.length < 2) return [text]
  const half = Math.ceil(names.length / 2)
  return [names.slice(0, half).join(" · "), names.slice(half).join(" · ")]
}

// pointed: { row, col }, marked in all panels, or in one where it has a panel; its words are bold.
function drawPanels(ink, m, a, theme, pointed = null) {
  const colours = ramp(m.stops)
  const font = theme.font
  for (let p = 0; p < m.panels; p++) {
    const across = p % a.across
    const x = across * a.stepX + a.left
    const y = a.head + Math.floor(p / a.across) * a.stepY + a.top
    ink.fillStyle = theme.masked
    ink.fillRect(x, y, a.cellW * m.cols, a.cellH * m.rows)
    const small = new OffscreenCanvas(m.cols, m.rows)
    small.getContext("2d").putImageData(pixels(m, p, colours), 0, 0)
    ink.drawImage(small, x, y, a.cellW * m.cols, a.cellH * m.rows)
    ink.strokeStyle = theme.line
    ink.lineWidth = 1
    ink.strokeRect(x - 0.5, y - 0.5, a.cellW * m.cols + 1, a.cellH * m.rows + 1)
    for (const [row, col] of m.marks || []) {
      ink.strokeStyle = "#D55E00"
      ink.lineWidth = 2
      ink.strokeRect(x + col * a.cellW + 1, y + row * a.cellH + 1, a.cellW - 2, a.cellH - 2)
    }
    if ((m.numbers || m.texts) && a.cellW >= 22 && a.cellH >= TYPE + 1) {
      ink.font = `${TYPE}px ${font}`
      ink.textAlign = "center"
      ink.textBaseline = "middle"
      for (let r = 0; r < m.rows; r++)
        for (let c = 0; c < m.cols; c++) {
          const value = m.value((p * m.rows + r) * m.cols + c)
          if (Number.isNaN(value)) continue
          const share = Math.max(0, Math.min(1, (value - m.low) / (m.high - m.low || 1)))
          const pixel = colours[Math.round(1023 * share)]
          ink.fillStyle = inkOn(pixel)
          const shown = m.log ? 10 ** value : value
          const text = m.texts ? fit(ink, m.texts[p][r * m.cols + c], a.cellW - 3) : m.log || m.numbers === "brief" || Math.abs(shown) >= 100 ? brief(shown) : Number.isFinite(value) ? value.toFixed(a.cellW >= 30 ? 2 : 1).replace("-", "−") : number(value)
          ink.fillText(text, x + (c + 0.5) * a.cellW, y + (r + 0.5) * a.cellH)
        }
    }
    if (pointed && (pointed.panel ?? p) === p) drawRing(ink, m, a, theme, pointed, x, y)
    ink.fillStyle = theme.text
    ink.textBaseline = "middle"
    if (m.titles) {
      const width = a.cellW * m.cols
      ink.font = `600 ${TYPE}px ${font}`
      ink.textAlign = m.corner ? "right" : "left"
      ink.fillText(fit(ink, m.titles[p], m.corner ? width - 2.5 * a.cellW : width + a.gap - 4), m.corner ? x + width - 4 : x, m.corner ? y + 10 : y - 10)
    }
    const setWeight = (isBold) => { ink.font = `${isBold ? "600 " : ""}${TYPE}px ${font}` }
    ink.textAlign = "right"
    if (across === 0 && a.hasRowWords)
      m.rowWords.forEach((word, r) => {
        setWeight(pointed?.row === r)
        const lines = a.cellH >= 2 * LINE ? halve(ink, word, a.left - 8) : [word]
        const first = y + (r + 0.5) * a.cellH - 0.5 * LINE * (lines.length - 1)
        lines.forEach((line, n) => ink.fillText(line, x - 6, first + n * LINE, a.left - 6))
      })
    if (a.hasColWords && p < a.across) {
      ink.textAlign = "left"
      m.colWords.forEach((word, c) => {
        setWeight(pointed?.col === c)
        ink.save()
        ink.translate(x + (c + 0.5) * a.cellW, a.head - 4)
        ink.rotate(a.isUpright ? -Math.PI / 2 : -Math.PI / 3)
        ink.fillText(word, 0, 0, a.head - 4)
        ink.restore()
      })
    }
  }
}

// Whether the upper right quarter of the first rows of a panel is blank.
function isCornerBlank(m, panel) {
  for (let row = 0; row < 2; row++)
    for (let col = Math.floor(m.cols / 2); col < m.cols; col++)
      if (!Number.isNaN(m.value((panel * m.rows + row) * m.cols + col))) return false
  return true
}

// Of matrices that come one after another: those of one moment.
function frame(whole, at) {
  const from = at * whole.panels * whole.rows * whole.cols
  return { ...whole, raw: whole.raw.subarray(from), value: (i) => whole.value(i + from), titles: whole.frames.titles[at] }
}

// One of several matrices by itself.
function alone(whole, panel) {
  const from = panel * whole.rows * whole.cols
  const ring = whole.ring?.panel === panel ? { ...whole.ring, panel: 0 } : null
  return { ...whole, panels: 1, across: 1, panel, ring, raw: whole.raw.subarray(from), value: (i) => whole.value(i + from), titles: [whole.titles[panel]] }
}

// A small picture of each matrix, of which a click enlarges one.
function drawThumbnails(box, m, chosen, enlarge) {
  const colours = ramp(m.stops)
  box.replaceChildren(...m.titles.map((title, panel) => {
    const button = document.createElement("button")
    const small = document.createElement("canvas")
    Object.assign(small, { width: m.cols, height: m.rows })
    small.getContext("2d").putImageData(pixels(m, panel, colours), 0, 0)
    button.type = "button"
    button.setAttribute("aria-pressed", panel === chosen)
    button.onclick = () => enlarge(panel)
    button.append(small, title)
    return button
  }))
}

const enlarged = new WeakMap() // root -> the matrix that is large on a phone

export default function ({ data, parentElement }) {
  const whole = unpack(data)
  // A causal mask leaves the corner empty: a panel's name has its place there.
  whole.corner = Boolean(whole.titles) && whole.square && whole.cols > 4 && whole.titles.every((_, panel) => isCornerBlank(whole, panel))
  let m = whole.frames ? frame(whole, 0) : whole
  const root = parentElement.querySelector(".root")
  const canvas = root.querySelector("canvas")
  const tip = root.querySelector(".tip")
  const theme = themeOf(root)
  canvas.setAttribute("aria-label", [m.alt, m.said].filter(Boolean).join(" ") + (m.clickable ? " Use the arrow keys to move and Enter to select." : " Use the arrow keys to move."))
  canvas.style.cursor = m.clickable ? "pointer" : "default"
  root.querySelector(".bar").style.setProperty("--stops", m.stops.join(","))
  root.querySelector(".low").textContent = end(m, 0)
  root.querySelector(".high").textContent = end(m, 1)
  const layout = root.querySelector(".layout")
  const placeScale = () => layout.classList.toggle("beside", !m.scaleAbove && root.clientWidth >= (store.presents ? 430 : 560))
  placeScale()
  layout.classList.toggle("shares", Boolean(m.sharesScale))
  root.querySelector(".what").textContent = m.what
  root.querySelector(".blank").textContent = m.blanks ? `blank: ${m.blank}` : ""
  const thumbnails = root.querySelector(".thumbnails")
  const isPhone = matchMedia("(max-width: 640px)").matches
  const enlarge = (panel) => {
    enlarged.set(root, panel)
    m = alone(whole, panel)
    drawThumbnails(thumbnails, whole, panel, enlarge)
    a = paint(canvas, m, theme)
  }
  let a
  thumbnails.replaceChildren()
  if (isPhone && whole.enlarge !== undefined && whole.panels > 1) enlarge(Math.min(enlarged.get(root) ?? whole.enlarge, whole.panels - 1))
  else a = paint(canvas, m, theme)
  const picture = () => {
    const [copy, width, scale] = [new OffscreenCanvas(1, 1), widthFor(canvas), screenScale(canvas)]
    const at = (n) => { draw(copy, frame(whole, n), theme, width, scale); return copy }
    return { at, theme, scale }
  }
  const about = [`${end(m, 0)} to ${end(m, 1)}`, whole.frames?.weights]
  const stop = whole.frames && player(root.querySelector(".player"), { ...whole.frames, about }, picture, (at) => {
    m = frame(whole, at)
    a = paint(canvas, m, theme)
    tip.style.display = "none"
  })
  canvas.toSvg = () => asSvg(m, a, theme, canvas.clientWidth)

  const cell = (panel, row, col) => {
    const value = m.value((panel * m.rows + row) * m.cols + col)
    if (m.tips) return `${m.tips[row][col]}  ${number(value, m)}`
    const where = m.titles ? m.titles[panel] + ": " : ""
    const words = m.colWords ? ` ${m.arrow} ${m.colTips ? m.colTips[col] : m.colWords[col]}` : ""
    const said = m.texts ? `  “${m.texts[panel][row * m.cols + col]}”` : ""
    return `${where}${m.rowTips ? m.rowTips[row] : m.rowWords[row]}${words}${said}  ${number(value, m)}`
  }
  const locate = (event) => {
    const box = canvas.getBoundingClientRect()
    const larger = box.width / canvas.clientWidth // in presentation mode
    const x = (event.clientX - box.left) / larger
    const y = (event.clientY - box.top) / larger
    const across = Math.max(0, Math.floor((x - a.left) / a.stepX))
    const down = Math.floor((y - a.head) / a.stepY)
    const panel = down * a.across + across
    if (across >= a.across || panel >= m.panels) return null
    const within = (at, most) => (at >= 0 && at < most ? at : -1)
    const col = within(Math.floor((x - a.left - across * a.stepX) / a.cellW), m.cols)
    const row = within(Math.floor((y - a.head - Math.max(0, down) * a.stepY - a.top) / a.cellH), m.rows)
    return { panel, row, col, x, y }
  }
  let pointed = null // { row, col } that is marked, −1 for a whole row or column
  const point = (at) => {
    if (pointed?.row === at?.row && pointed?.col === at?.col) return
    pointed = at
    a = paint(canvas, m, theme, pointed)
  }
  const say = (panel, row, col, x, y) => {
    tip.textContent = cell(panel, row, col)
    tip.style.display = "block"
    const wide = canvas.clientWidth
    tip.style.left = Math.max(0, Math.min(x + 12, wide - tip.offsetWidth)) + "px"
    tip.style.top = canvas.offsetTop + y - 34 + "px"
  }
  const pick = ({ panel, row, col }) => store.change({ [m.set]: [m.panel ?? panel, row, col] })
  const leave = () => {
    tip.style.display = "none"
    point(null)
  }
  canvas.onmousemove = (event) => {
    const at = locate(event)
    if (!at || (at.row < 0 && at.col < 0)) return leave()
    point({ row: at.row, col: at.col })
    if (at.row >= 0 && at.col >= 0) say(at.panel, at.row, at.col, at.x, at.y)
    else tip.style.display = "none"
  }
  canvas.onmouseleave = canvas.onblur = leave
  canvas.onclick = (event) => {
    const at = locate(event)
    if (at && at.panel >= 0 && m.clickable) pick(at)
  }
  let here = { panel: 0, row: 0, col: 0 }
  canvas.onkeydown = (event) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -here.col], End: [0, m.cols - 1 - here.col] }[event.key]
    if (move) {
      event.preventDefault()
      here = stepped(here, move, m, a.across)
      const x = (here.panel % a.across) * a.stepX + a.left + here.col * a.cellW
      const y = a.head + Math.floor(here.panel / a.across) * a.stepY + a.top + here.row * a.cellH
      point({ row: here.row, col: here.col })
      say(here.panel, here.row, here.col, x, y)
    } else if (event.key === "Enter" && m.clickable) pick(here)
  }
  const unwatch = onWidth(root, () => {
    placeScale()
    a = paint(canvas, m, theme)
  })
  return () => {
    unwatch()
    stop?.()
  }
}
