// Attention as lines from each token that reads (left) to the tokens it reads (right). values.js stands in
// front of this file.

export default function ({ data, parentElement }) {
  const m = unpack(data)
  const root = parentElement.querySelector(".root")
  const canvas = root.querySelector("canvas")
  const tip = root.querySelector(".tip")
  const theme = themeOf(root)
  canvas.setAttribute("aria-label", [m.alt, m.said].filter(Boolean).join(" "))
  const step = Math.max(14, Math.min(26, (m.height - 30) / m.rows))
  const height = Math.ceil(step * m.rows + 30)
  const top = 24
  const most = m.high || 1
  let reader = -1

  const draw = () => {
    canvas.style.height = height + "px"
    drawLines(sharp(canvas, canvas.parentElement.clientWidth, height, screenScale(canvas)), canvas.parentElement.clientWidth)
  }
  canvas.toSvg = () => {
    const ink = new SvgInk(canvas.parentElement.clientWidth, height, theme.background)
    drawLines(ink, canvas.parentElement.clientWidth)
    return ink.done()
  }
  const drawLines = (ink, width) => {
    const left = Math.min(150, width * 0.25)
    const right = width - left
    const y = (i) => top + (i + 0.5) * step
    ink.font = `600 12px ${theme.font}`
    ink.fillStyle = theme.text
    ink.textBaseline = "middle"
    ink.textAlign = "right"
    ink.fillText("query", left - 8, 10)
    ink.textAlign = "left"
    ink.fillText("key", right + 8, 10)
    for (let r = 0; r < m.rows; r++) {
      if (reader >= 0 && r !== reader) continue
      for (let c = 0; c < m.cols; c++) {
        const value = m.value(r * m.cols + c)
        const share = value / most
        if (!(share > 0.02)) continue
        ink.strokeStyle = theme.primary
        ink.globalAlpha = Math.min(1, reader >= 0 ? 0.15 + 0.85 * share : 0.04 + 0.9 * share ** 2)
        ink.lineWidth = 0.6 + 4.4 * share ** 1.5
        ink.beginPath()
        ink.moveTo(left, y(r))
        ink.bezierCurveTo((left + right) / 2, y(r), (left + right) / 2, y(c), right, y(c))
        ink.stroke()
      }
    }
    ink.globalAlpha = 1
    ink.font = `12px ${theme.font}`
    for (let i = 0; i < m.rows; i++) {
      ink.globalAlpha = reader >= 0 && i !== reader ? 0.35 : 1
      ink.textAlign = "right"
      ink.fillText(m.rowWords[i], left - 8, y(i))
      const weight = reader >= 0 ? m.value(reader * m.cols + i) : NaN
      ink.globalAlpha = reader >= 0 ? Math.max(0.35, Math.min(1, 0.35 + 3 * (weight || 0))) : 1
      ink.textAlign = "left"
      ink.fillText(m.rowWords[i] + (reader >= 0 ? "  " + number(weight, m) : ""), right + 8, y(i))
    }
    ink.globalAlpha = 1
  }
  const at = (event) => {
    const box = canvas.getBoundingClientRect()
    const row = Math.floor(((event.clientY - box.top) * (canvas.clientWidth / box.width) - top) / step) // in presentation mode, too
    return row >= 0 && row < m.rows ? row : -1
  }
  const show = (row) => {
    if (row === reader) return
    reader = row
    tip.textContent = row < 0 ? "" : `${m.rowWords[row]} → …`
    draw()
  }
  canvas.onmousemove = (event) => show(at(event))
  canvas.onmouseleave = () => show(-1)
  canvas.onkeydown = (event) => {
    const move = { ArrowUp: -1, ArrowDown: 1 }[event.key]
    if (!move) return
    event.preventDefault()
    show(Math.min(Math.max(reader + move, 0), m.rows - 1))
  }
  draw()
  return onWidth(root, draw)
}
