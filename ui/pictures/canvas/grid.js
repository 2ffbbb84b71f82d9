// Attention maps and other matrices of one shape as heat maps on a canvas: colours, words, hover, click, arrow keys.

// How many panels to a row, and how large: as large as the width and the height at hand allow. Words stand once, left
// of each row of panels and below each column of them.
function arrange(m, width, height) {
  const long = (words, per) => per * Math.max(...words.map((w) => w.length))
  let best = null
  for (let across = m.across || 1; across <= (m.across || m.panels); across++) {
    const down = Math.ceil(m.panels / across)
    const left = Math.min(m.square ? 112 : 260, 14 + long(m.rowWords, 6.4))
    const foot = m.colWords ? Math.min(m.square ? 92 : 120, 10 + long(m.colWords, 5.4)) : 8
    const top = m.titles ? 20 : 4
    const gap = across > 1 ? 10 : 0
    let cellW = (width - left - 4 - gap * (across - 1)) / across / m.cols
    let cellH = (height - foot) / down / m.rows - (top + 4) / m.rows
    if (m.square) cellW = cellH = Math.min(cellW, cellH)
    cellW = Math.min(cellW, m.square ? 44 : 84)
    cellH = Math.min(cellH, 44)
    const score = Math.min(cellW, cellH * (m.square ? 1 : 4))
    if (!best || score > best.score) best = { score, across, down, left, foot, top, gap, cellW, cellH }
  }
  best.stepX = best.cellW * m.cols + best.gap
  best.stepY = best.cellH * m.rows + best.top + 4
  // where there is no room for every word, every second or third, … stands
  best.rowEvery = Math.ceil(10.5 / best.cellH)
  best.colEvery = Math.ceil(9 / best.cellW)
  best.height = Math.ceil(best.stepY * best.down + best.foot)
  return best
}

function paint(canvas, m, theme) {
  const a = draw(canvas, m, theme, canvas.parentElement.clientWidth, window.devicePixelRatio || 1)
  canvas.style.height = a.height + "px"
  canvas.dataset.layout = JSON.stringify(a) // where each panel lies, for whoever wants to check pixels against numbers
  return a
}

// On any canvas, which becomes so wide. scale: pixels of the screen in one of the page.
function draw(canvas, m, theme, width, scale) {
  const a = arrange(m, width, m.height)
  const ink = sharp(canvas, width, a.height, scale)
  ink.imageSmoothingEnabled = false
  drawPanels(ink, m, a, theme)
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
  drawPanels(ink, m, a, theme)
  ink.out.push("</g>")
  return ink.done()
}

function drawPanels(ink, m, a, theme) {
  const colours = ramp(m.stops)
  const font = theme.font
  for (let p = 0; p < m.panels; p++) {
    const across = p % a.across
    const x = across * a.stepX + a.left
    const y = Math.floor(p / a.across) * a.stepY + a.top
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
    if ((m.numbers || m.texts) && a.cellW >= 20 && a.cellH >= 13) {
      ink.font = `${Math.min(11, a.cellH - 2)}px ${font}`
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
          const text = m.texts ? fit(ink, m.texts[p][r * m.cols + c], a.cellW - 3) : m.log || m.numbers === "brief" || Math.abs(shown) >= 100 ? brief(shown) : Number.isFinite(value) ? value.toFixed(a.cellW >= 27 ? 2 : 1).replace("-", "−") : number(value)
          ink.fillText(text, x + (c + 0.5) * a.cellW, y + (r + 0.5) * a.cellH)
        }
    }
    ink.fillStyle = theme.text
    ink.textBaseline = "middle"
    if (m.titles) {
      ink.font = `600 12px ${font}`
      ink.textAlign = "left"
      ink.fillText(fit(ink, m.titles[p], a.cellW * m.cols + a.gap - 4), x, y - 10)
    }
    ink.font = `${Math.max(9, Math.min(11, a.cellH + 1))}px ${font}`
    ink.textAlign = "right"
    if (across === 0) m.rowWords.forEach((w, r) => r % a.rowEvery || ink.fillText(w, x - 5, y + (r + 0.5) * a.cellH, a.left - 6))
    if (m.colWords && p + a.across >= m.panels) {
      ink.font = `${Math.max(9, Math.min(11, a.cellW + 1))}px ${font}`
      m.colWords.forEach((w, c) => {
        if (c % a.colEvery) return
        ink.save()
        ink.translate(x + (c + 0.5) * a.cellW, y + a.cellH * m.rows + 5)
        ink.rotate(-Math.PI / 3)
        ink.fillText(w, 0, 0, a.foot)
        ink.restore()
      })
    }
  }
}

// Of matrices that come one after another: those of one moment.
function frame(whole, at) {
  const from = at * whole.panels * whole.rows * whole.cols
  return { ...whole, raw: whole.raw.subarray(from), value: (i) => whole.value(i + from), titles: whole.frames.titles[at] }
}

export default function ({ data, parentElement }) {
  const whole = unpack(data)
  let m = whole.frames ? frame(whole, 0) : whole
  const root = parentElement.querySelector(".root")
  const canvas = root.querySelector("canvas")
  const tip = root.querySelector(".tip")
  const theme = themeOf(root)
  canvas.setAttribute("aria-label", [m.alt, m.said].filter(Boolean).join(" ") + (m.clickable ? " Arrow keys move, Enter picks." : " Arrow keys move."))
  canvas.style.cursor = m.clickable ? "pointer" : "default"
  root.querySelector(".bar").style.background = `linear-gradient(90deg, ${m.stops.join(",")})`
  root.querySelector(".low").textContent = end(m, 0)
  root.querySelector(".high").textContent = end(m, 1)
  root.querySelector(".what").textContent = m.what
  root.querySelector(".blank").textContent = m.blanks ? `no colour: ${m.blank}` : ""
  let a = paint(canvas, m, theme)
  const picture = () => {
    const [copy, width, scale] = [new OffscreenCanvas(1, 1), canvas.parentElement.clientWidth, window.devicePixelRatio || 1]
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
    const larger = box.width / canvas.clientWidth // in presenter size
    const x = (event.clientX - box.left) / larger
    const y = (event.clientY - box.top) / larger
    const across = Math.max(0, Math.floor((x - a.left) / a.stepX))
    const down = Math.floor(y / a.stepY)
    const panel = down * a.across + across
    if (across >= a.across || panel >= m.panels || panel < 0) return null
    const col = Math.floor((x - a.left - across * a.stepX) / a.cellW)
    const row = Math.floor((y - down * a.stepY - a.top) / a.cellH)
    const inside = row >= 0 && row < m.rows && col >= 0 && col < m.cols
    return { panel, row, col, inside, x, y }
  }
  const say = (panel, row, col, x, y) => {
    tip.textContent = cell(panel, row, col)
    tip.style.display = "block"
    const wide = canvas.clientWidth
    tip.style.left = Math.max(0, Math.min(x + 12, wide - tip.offsetWidth)) + "px"
    tip.style.top = canvas.offsetTop + y - 34 + "px"
  }
  canvas.onmousemove = (event) => {
    const at = locate(event)
    if (at && at.inside) say(at.panel, at.row, at.col, at.x, at.y)
    else tip.style.display = "none"
  }
  canvas.onmouseleave = () => (tip.style.display = "none")
  canvas.onclick = (event) => {
    const at = locate(event)
    if (at && m.clickable) store.change({ [m.set]: [at.panel, at.row, at.col] })
  }
  const mark = root.querySelector(".mark")
  mark.style.display = "none"
  canvas.onblur = () => { mark.style.display = tip.style.display = "none" }
  let here = { panel: 0, row: 0, col: 0 }
  canvas.onkeydown = (event) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -here.col], End: [0, m.cols - 1 - here.col] }[event.key]
    if (move) {
      event.preventDefault()
      here = stepped(here, move, m, a.across)
      const x = (here.panel % a.across) * a.stepX + a.left + here.col * a.cellW
      const y = Math.floor(here.panel / a.across) * a.stepY + a.top + here.row * a.cellH
      say(here.panel, here.row, here.col, x, y)
      Object.assign(mark.style, { display: "block", left: `${x - 2}px`, top: `${canvas.offsetTop + y - 2}px`, width: `${a.cellW}px`, height: `${a.cellH}px` })
    } else if (event.key === "Enter" && m.clickable) store.change({ [m.set]: [here.panel, here.row, here.col] })
  }
  const unwatch = onWidth(root, () => { a = paint(canvas, m, theme) })
  return () => {
    unwatch()
    stop?.()
  }
}
