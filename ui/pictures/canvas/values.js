// What grid.js and lines.js share: what they are sent, in colours and in words, and the way from cell to cell.
//
// The bytes: length of a JSON header (uint32, little endian), the header, zeros up to a multiple of 4, the cells
// (float32, NaN = may not be looked at; or uint16 in steps of (high - low) / 65534, 65535 = may not be looked at).

function unpack(bytes) {
  const view = bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes)
  const length = new DataView(view.buffer, view.byteOffset, 4).getUint32(0, true)
  const head = JSON.parse(new TextDecoder().decode(view.subarray(4, 4 + length)))
  const cells = view.slice(4 + length + ((4 - (length % 4)) % 4)).buffer
  const raw = head.steps ? new Uint16Array(cells) : new Float32Array(cells)
  const step = (head.high - head.low) / 65534
  const value = head.steps ? (i) => (raw[i] === 65535 ? NaN : head.low + raw[i] * step) : (i) => raw[i]
  return { ...head, raw, value }
}

// A table of 1024 colours as canvas pixels (little endian: alpha, blue, green, red), linear between the stops.
function ramp(stops) {
  const rgb = stops.map((s) => [1, 3, 5].map((i) => parseInt(s.slice(i, i + 2), 16)))
  return Uint32Array.from({ length: 1024 }, (_, n) => {
    const at = (n / 1023) * (rgb.length - 1)
    const low = Math.min(Math.floor(at), rgb.length - 2)
    const [r, g, b] = rgb[low].map((x, i) => Math.round(x + (rgb[low + 1][i] - x) * (at - low)))
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0
  })
}

// One panel as an image of a pixel per cell; what may not be looked at stays transparent.
function pixels(m, panel, colours) {
  const image = new ImageData(m.cols, m.rows)
  const out = new Uint32Array(image.data.buffer)
  const from = panel * out.length
  if (m.steps) for (let i = 0; i < out.length; i++) out[i] = m.raw[from + i] === 65535 ? 0 : colours[m.raw[from + i] >> 6]
  else {
    const scale = 1023 / (m.high - m.low || 1)
    for (let i = 0; i < out.length; i++) {
      const x = m.raw[from + i]
      out[i] = x === x ? colours[Math.max(0, Math.min(1023, Math.round((x - m.low) * scale)))] : 0
    }
  }
  return image
}

// Words on one of these colours: black or white, whichever has more contrast (WCAG 2.2, relative luminance): 4.6 : 1 at least.
function inkOn(pixel) {
  const [r, g, b] = [0, 8, 16].map((at) => ((pixel >> at) & 255) / 255).map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
  const light = 0.2126 * r + 0.7152 * g + 0.0722 * b
  return (light + 0.05) / 0.05 > 1.05 / (light + 0.05) ? "#000" : "#fff"
}

// m.log: the cells hold the logarithm (to base 10) of what they stand for.
function number(value, m) {
  if (Number.isNaN(value)) return m?.blank ?? "not a number"
  if (m?.log) return number(10 ** value)
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞"
  if (m?.steps) {
    // no more digits than the steps in which the cells travelled can carry
    const digits = Math.floor(-Math.log10((m.high - m.low) / 65534))
    return value.toFixed(Math.max(0, Math.min(4, digits))).replace("-", "−")
  }
  const size = Math.abs(value)
  if (size !== 0 && (size < 0.0001 || size >= 1e7)) return scientific(value, 2)
  const digits = size >= 100 ? 1 : 3
  const rounding = size !== 0 && size < 0.001 ? { maximumSignificantDigits: 3 } : { minimumFractionDigits: digits, maximumFractionDigits: digits }
  return (value || 0).toLocaleString("en", rounding).replace("-", "−")
}

// As in sentences: "7.5 × 10³⁶".
function scientific(value, digits) {
  const [times, power] = value.toExponential(digits).split("e").map(Number)
  return `${times} × 10${String(power).replace("-", "⁻").replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d])}`.replace("-", "−")
}

// A number in a cell of a few characters.
function brief(value) {
  const size = Math.abs(value)
  if (!Number.isFinite(value)) return number(value)
  if (size >= 1e4 || (size !== 0 && size < 0.001)) return value.toExponential(0).replace("e+", "e").replaceAll("-", "−")
  return String(size >= 100 ? Math.round(value) : Number(value.toPrecision(size < 0.01 ? 1 : 2))).replace("-", "−")
}

// An end of the scale, in words: what lies beyond it has its colour too.
function end(m, which) {
  const value = which ? m.high : m.low
  const shown = m.log ? 10 ** value : value
  const size = Math.abs(shown)
  const isPlain = size < 1e7 && (size >= 0.0001 || size === 0)
  const digits = Number.isInteger(shown) ? 7 : 3
  const text = isPlain ? (shown || 0).toLocaleString("en", { maximumSignificantDigits: digits }).replace("-", "−") : number(shown)
  return m.clipped?.[which] ? (which ? "≥ " : "≤ ") + text : text
}

// The colours and the font of the page around a picture.
function themeOf(root) {
  const style = getComputedStyle(root)
  const pick = (name, other) => style.getPropertyValue(name).trim() || other
  const background = pick("--st-background-color", "#fff")
  return {
    text: pick("--st-text-color", "#333"),
    masked: inkOn(parseInt(background.slice(1), 16)) === "#fff" ? "#36414c" : "#f3f5f8", // no colour of a scale
    line: pick("--st-border-color", "#ccc"),
    font: pick("--st-font", "sans-serif"),
    background,
    primary: pick("--st-primary-color", "#0072B2"),
  }
}

// Pixels of the screen in one of the page, which is enlarged in presentation mode.
function screenScale(canvas) {
  return (window.devicePixelRatio || 1) * (canvas.currentCSSZoom ?? 1)
}

// Make a canvas as sharp as the screen. -> its context, in pixels of the page
function sharp(canvas, width, height, scale) {
  canvas.width = Math.round(width * scale)
  canvas.height = Math.round(height * scale)
  const ink = canvas.getContext("2d")
  ink.scale(scale, scale)
  return ink
}

const watches = new WeakMap()

// Paint again whenever the root has another width. -> what ends that
function onWidth(root, paint) {
  watches.get(root)?.disconnect() // else an older call would go on painting what it was given
  let width = root.clientWidth
  const watch = new ResizeObserver(() => {
    if (root.clientWidth === width) return
    width = root.clientWidth
    paint()
  })
  watch.observe(root)
  watches.set(root, watch)
  return () => watch.disconnect()
}

// As much of a text as there is room for.
function fit(ink, text, width) {
  if (!ink.measureText || ink.measureText(text).width <= width) return text
  let long = text.length
  while (long > 1 && ink.measureText(text.slice(0, long) + "…").width > width) long--
  return text.slice(0, long) + "…"
}

// The cell that an arrow key leads to: beyond the end of a panel, that of the one beside it, where there is one.
function stepped({ panel, row, col }, [down, right], m, across) {
  const to = { panel, row: row + down, col: col + right }
  const beside = (next, side, at) => { if (next >= 0 && next < m.panels) Object.assign(to, { panel: next, [side]: at }) }
  if (to.col >= m.cols) beside(panel + 1, "col", 0)
  if (to.col < 0) beside(panel - 1, "col", m.cols - 1)
  if (to.row >= m.rows) beside(panel + across, "row", 0)
  if (to.row < 0) beside(panel - across, "row", m.rows - 1)
  to.col = Math.min(Math.max(to.col, 0), m.cols - 1)
  to.row = Math.min(Math.max(to.row, 0), m.rows - 1)
  return to
}

