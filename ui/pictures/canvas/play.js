// Pictures one after another: a button, a slider and a speed under a picture that has frames. Whoever draws what belongs to the
// same moments hears of each as the event "ablation-frame", with its number, and may ask for it by "ablation-frame-asked".

const SPEEDS = [1, 2, 4, 8] // frames a second
const TAKE = "Export animation"
const playing = new WeakMap() // what stays when the picture is drawn with other numbers

// show(at): draws one frame; picture(): what draws one on a canvas of its own; m.moments: how each is called; m.words: what is said
// at each.
function player(box, m, picture, show) {
  const state = playing.get(box) ?? { at: 0, speed: 2, timer: 0, takes: false }
  playing.set(box, state)
  clearInterval(state.timer)
  if (!box.firstChild) box.append(...["button", "input", "output", "select", "button", "p"].map((name) => document.createElement(name)))
  const [button, slider, where, speed, take, words] = box.children
  const last = m.moments.length - 1
  const go = (at, said = true) => {
    state.at = Math.max(0, Math.min(last, at))
    slider.value = state.at
    slider.setAttribute("aria-valuetext", m.moments[state.at])
    slider.style.setProperty("--share", `${(100 * state.at) / (last || 1)}%`)
    where.textContent = m.moments[state.at]
    words.textContent = m.words[state.at]
    show(state.at)
    if (said) tell()
  }
  const tell = () => window.dispatchEvent(new CustomEvent("ablation-frame", { detail: m.numbers[state.at] }))
  const run = (is) => {
    clearInterval(state.timer)
    state.runs = is
    button.textContent = is ? "❚❚ Pause" : "▶ Play"
    if (is) state.timer = setInterval(() => (state.at < last ? go(state.at + 1) : m.grows || run(false)), 1000 / state.speed)
  }
  Object.assign(slider, { type: "range", min: 0, max: last, step: 1 })
  slider.setAttribute("aria-label", m.unit)
  slider.oninput = () => { run(false); go(Number(slider.value)) }
  button.type = take.type = "button"
  button.onclick = () => {
    if (!state.runs && state.at === last) go(0)
    run(!state.runs)
  }
  if (!speed.firstChild) speed.append(...SPEEDS.map((value) => new Option(`${value} fps`, value)))
  speed.setAttribute("aria-label", "Speed")
  speed.value = state.speed
  speed.onchange = () => { state.speed = Number(speed.value); run(Boolean(state.runs)) }
  if (!state.takes) take.textContent = TAKE
  take.title = "Animated PNG, for browsers and slides"
  take.disabled = state.takes
  take.onclick = async () => {
    state.takes = take.disabled = true
    try {
      // Of what is shown now: its numbers, size, colours and speed stay, whatever is done meanwhile.
      const [copy, ms] = [picture(), 1000 / state.speed]
      const frames = []
      for (let n = 0; n <= last; n++) {
        const line = [m.moments[n], ...m.about].join("  ·  ")
        frames.push(await titled(copy.at(n), line, copy))
        take.textContent = `${n + 1} of ${last + 1}`
      }
      const link = document.createElement("a")
      link.href = URL.createObjectURL(animated(frames, ms))
      link.download = `${m.file}.png`
      link.click()
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
    } finally {
      state.takes = take.disabled = false
      take.textContent = TAKE
    }
  }
  window.removeEventListener("ablation-frame-asked", state.tell) // Streamlit ends only what was drawn last
  state.tell = tell
  window.addEventListener("ablation-frame-asked", tell) // by what is drawn later
  go(state.at)
  run(Boolean(state.runs))
  return () => {
    clearInterval(state.timer)
    window.removeEventListener("ablation-frame-asked", state.tell)
  }
}

// The canvas on the page's background, with a line that says when -> the bytes of a PNG.
async function titled(canvas, words, { theme, scale }) {
  const line = Math.round(26 * scale)
  const copy = new OffscreenCanvas(canvas.width, canvas.height + line)
  const ink = copy.getContext("2d")
  ink.fillStyle = theme.background
  ink.fillRect(0, 0, copy.width, copy.height)
  ink.drawImage(canvas, 0, line)
  ink.fillStyle = theme.text
  ink.font = `600 ${Math.round(line / 2)}px ${theme.font}`
  ink.fillText(words, 4, Math.round(line * 0.7))
  return new Uint8Array(await (await copy.convertToBlob({ type: "image/png" })).arrayBuffer())
}

// PNGs of one size as one animated PNG (https://www.w3.org/TR/png-3/#apng-frame-based-animation).
function animated(pictures, ms) {
  const chunks = pictures.map(split)
  const parts = [pictures[0].subarray(0, 8), chunk("IHDR", chunks[0].IHDR[0]), chunk("acTL", words32([pictures.length, 0]))]
  let order = 0
  chunks.forEach((one, at) => {
    const [width, height] = [0, 4].map((from) => new DataView(one.IHDR[0].buffer, one.IHDR[0].byteOffset).getUint32(from))
    const control = new Uint8Array([...words32([order++, width, height, 0, 0]), ...short(Math.round(ms)), ...short(1000), 0, 0])
    parts.push(chunk("fcTL", control))
    for (const data of one.IDAT) parts.push(at ? chunk("fdAT", new Uint8Array([...words32([order++]), ...data])) : chunk("IDAT", data))
  })
  parts.push(chunk("IEND", new Uint8Array()))
  return new Blob(parts, { type: "image/png" })
}

// Name -> the data of the chunks of that name.
function split(png) {
  const found = { IHDR: [], IDAT: [] }
  const view = new DataView(png.buffer, png.byteOffset)
  for (let from = 8; from < png.length; ) {
    const length = view.getUint32(from)
    const name = String.fromCharCode(...png.subarray(from + 4, from + 8))
    found[name]?.push(png.subarray(from + 8, from + 8 + length))
    from += 12 + length
  }
  return found
}

function chunk(name, data) {
  const named = new Uint8Array(4 + data.length)
  named.set([...name].map((letter) => letter.charCodeAt(0)))
  named.set(data, 4)
  const made = new Uint8Array(named.length + 8)
  made.set(words32([data.length]))
  made.set(named, 4)
  made.set(words32([crc(named)]), 4 + named.length)
  return made
}

const words32 = (values) => new Uint8Array(values.flatMap((value) => [24, 16, 8, 0].map((by) => (value >>> by) & 255)))
const short = (value) => [value >> 8, value & 255]

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1
  return n
})

function crc(bytes) {
  let sum = 0xffffffff
  for (const byte of bytes) sum = CRC[(sum ^ byte) & 255] ^ (sum >>> 8)
  return (sum ^ 0xffffffff) >>> 0
}
