// Every picture on the page, to take away as SVG or PNG. The pictures are found in the page itself, so they leave it as
// they are seen: Vega's and our own SVGs with their styles written into them, canvases as what they were drawn from.

const STYLES = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linejoin", "opacity",
  "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline", "display", "visibility",
] // prettier-ignore

function* within(node) {
  for (const element of node.querySelectorAll("*")) {
    yield element
    if (element.shadowRoot) yield* within(element.shadowRoot)
  }
}

function pictures() {
  const found = []
  for (const element of within(document.querySelector("[data-testid=stMain]"))) {
    if (element.toSvg) found.push({ name: element.getAttribute("aria-label"), element, make: () => element.toSvg() })
    else if (element.matches("svg.picture, [data-testid=stVegaLiteChart] svg.marks, svg[viewBox][aria-label]"))
      found.push({ name: named(element), element, make: () => standalone(element) })
  }
  return found.filter((each) => each.element.getBoundingClientRect().width > 40)
}

function named(element) {
  const chart = element.closest("[data-testid=stVegaLiteChart]")
  const label = chart?.querySelector("[aria-label]:not(svg *)") || chart
  return element.about?.title || label?.getAttribute("aria-label") || element.getAttribute("aria-label") || "Chart"
}

const plain = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c])

// A browser gives a reference to another part of the picture, such as a legend's colours, with the page's address before it.
const own = (value) => value.replace(/url\(["']?[^"')#]*#([^"')]+)["']?\)/g, "url(#$1)")

// An SVG of the page with all its styles in it, and the words around it: title, who has which colour, the sentence.
function standalone(element) {
  const box = element.getBoundingClientRect()
  const copy = element.cloneNode(true)
  const [from, to] = [[element, ...element.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]]
  from.forEach((one, n) => {
    const style = getComputedStyle(one)
    for (const name of STYLES) to[n].setAttribute(name, own(style.getPropertyValue(name)))
    to[n].removeAttribute("class")
  })
  const { text, background } = colours()
  const about = element.about
  const lines = []
  if (about) {
    lines.push(`<text x="8" y="20" font-weight="600" font-size="14" fill="${text}">${plain(about.title)}</text>`)
    lines.push(`<text x="8" y="37" font-size="12" fill="${text}">${plain(about.label)}</text>`)
    about.legend.forEach(({ name, colour }, n) =>
      lines.push(
        `<circle cx="13" cy="${51 + 17 * n}" r="4" fill="${colour}"/><text x="23" y="${55 + 17 * n}" font-size="12" fill="${text}">${plain(name)}</text>`,
      ),
    )
  }
  const head = about ? 48 + 17 * about.legend.length : 0
  const said = about ? wrap(about.sentence, Math.max(30, box.width / 6)) : []
  said.forEach((line, n) =>
    lines.push(`<text x="8" y="${head + box.height + 18 + 16 * n}" font-size="12" fill="${text}">${plain(line)}</text>`),
  )
  const [width, height] = [Math.ceil(box.width), Math.ceil(head + box.height + 16 * said.length + 12)]
  copy.setAttribute("x", 0)
  copy.setAttribute("y", head)
  copy.setAttribute("width", box.width)
  copy.setAttribute("height", box.height)
  if (!copy.getAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`)
  const inner = new XMLSerializer().serializeToString(copy)
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif"><rect width="${width}" height="${height}" fill="${background}"/>${lines.join("")}${inner}</svg>`
}

function wrap(text, most) {
  const lines = [""]
  for (const word of text.split(" ")) {
    if ((lines.at(-1) + word).length > most && lines.at(-1)) lines.push("")
    lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word
  }
  return lines
}

function colours() {
  const style = getComputedStyle(document.querySelector("[data-testid=stApp]"))
  return { text: style.color, background: style.backgroundColor }
}

function save(blob, name) {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

async function asPng(svg) {
  const image = new Image()
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg)
  await image.decode()
  const canvas = document.createElement("canvas")
  canvas.width = 2 * image.width // twice as fine as on screen, for print and projector
  canvas.height = 2 * image.height
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height)
  return new Promise((done) => canvas.toBlob(done, "image/png"))
}

// As in takeaway.py: whole words, as far as they have room.
function slug(name) {
  const made = name.toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_+|_+$/g, "")
  if (made.length <= 60) return made || "picture"
  return made.slice(0, 61).replace(/_[^_]*$/, "").slice(0, 60)
}

// data: what the names of all files begin with, or nothing
export default function ({ parentElement, data }) {
  const list = parentElement.querySelector(".list")
  const fill = () => {
    const found = pictures()
    parentElement.querySelector(".head").hidden = !found.length
    list.replaceChildren(
      ...found.map(({ name, make }) => {
        const row = document.createElement("div")
        const title = document.createElement("span")
        title.textContent = title.title = name.replace(/ Arrow keys move.*$/, "")
        const button = (kind, act) => {
          const made = document.createElement("button")
          made.textContent = kind
          made.setAttribute("aria-label", `${title.textContent}: ${kind}`)
          made.onclick = () => act((data ? data + "_" : "") + slug(title.textContent) + "." + kind.toLowerCase())
          return made
        }
        row.append(
          title,
          button("SVG", (file) => save(new Blob([make()], { type: "image/svg+xml" }), file)),
          button("PNG", async (file) => save(await asPng(make()), file)),
        )
        return row
      }),
    )
  }
  fill()
  parentElement.querySelector(".root").onpointerenter = fill // what is on the page may have changed since
}
