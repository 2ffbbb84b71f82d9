// What grid.js and lines.js draw with on a canvas, as an SVG: the few calls that they make, and nothing else.

class SvgInk {
  constructor(width, height, background) {
    this.out = [`<rect width="${width}" height="${height}" fill="${background}"/>`]
    this.width = width
    this.height = height
    this.turns = []
    this.globalAlpha = 1
  }
  measureText(text) {
    return { width: 0.56 * parseFloat(/([\d.]+)px/.exec(this.font)[1]) * text.length } // near enough for a cut
  }
  #attributes(kind) {
    const turn = this.turns.join(" ")
    const alpha = this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : ""
    const paint = kind === "fill" ? ` fill="${this.fillStyle}"` : ` fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"`
    return paint + alpha + (turn ? ` transform="${turn}"` : "")
  }
  fillRect(x, y, w, h) {
    this.out.push(`<rect x="${x}" y="${y}" width="${w}" height="${h}"${this.#attributes("fill")}/>`)
  }
  strokeRect(x, y, w, h) {
    this.out.push(`<rect x="${x}" y="${y}" width="${w}" height="${h}"${this.#attributes("stroke")}/>`)
  }
  drawImage(small, x, y, w, h) {
    const canvas = document.createElement("canvas")
    canvas.width = small.width
    canvas.height = small.height
    canvas.getContext("2d").drawImage(small, 0, 0)
    const data = canvas.toDataURL()
    const style = "image-rendering:pixelated"
    this.out.push(`<image x="${x}" y="${y}" width="${w}" height="${h}" preserveAspectRatio="none" style="${style}" href="${data}"/>`)
  }
  fillText(text, x, y) {
    const [, weight, size, family] = /^(?:(\d+) )?([\d.]+)px (.*)$/.exec(this.font)
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign]
    const plain = String(text).replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c])
    const font = `font-size="${size}" font-family='${family.replaceAll("'", '"')}'${weight ? ` font-weight="${weight}"` : ""}`
    this.out.push(`<text x="${x}" y="${y}" dy="0.35em" text-anchor="${anchor}" ${font}${this.#attributes("fill")}>${plain}</text>`)
  }
  save() {
    this.before = this.turns
  }
  restore() {
    this.turns = this.before
  }
  translate(x, y) {
    this.turns = [...this.turns, `translate(${x} ${y})`]
  }
  rotate(angle) {
    this.turns = [...this.turns, `rotate(${(angle * 180) / Math.PI})`]
  }
  beginPath() {
    this.path = ""
  }
  moveTo(x, y) {
    this.path += `M${x} ${y}`
  }
  bezierCurveTo(...points) {
    this.path += `C${points.join(" ")}`
  }
  stroke() {
    this.out.push(`<path d="${this.path}"${this.#attributes("stroke")}/>`)
  }
  done() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}">${this.out.join("")}</svg>`
  }
}
