/** What would hide or steer is shown, not sent: control and direction marks, whatever takes no room, floods of blank lines. */
const UNSEEN =
  /[[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]--[\u{fe0e}-\u{fe0f}\n\t]]/gv
const FLOOD = /\n(?:[ \t]*\n){4,}/g
export const visible = (text) =>
  text
    .replace(UNSEEN, (character) => `\\u{${character.codePointAt(0).toString(16)}}`)
    .replace(FLOOD, (lines) => `\n\\n × ${lines.split('\n').length - 2}\n`)

const shown = (child) => (typeof child === 'string' ? visible(child) : child)

/** The text of an element that is there, by the rules of `h`. */
export const setText = (element, text) => void (element.textContent = visible(text))

/**
 * Elements are made with text, never from it: nothing that an agent or a person wrote is read as markup. And every text goes
 * through here, so nothing in it is invisible.
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value)
    else element.setAttribute(name, value === true ? '' : value)
  }
  element.append(...children.filter((child) => child !== undefined && child !== false).map(shown))
  return element
}

/**
 * Brings a list into the wanted order, touching only what changed, so that nothing jumps, a selection stays and what was
 * unfolded stays unfolded. Each item: `key`, `version` (the same version is the same picture) and `make()`; with
 * `update(element)` a new version changes the element that is there.
 */
export function reconcile(list, items) {
  const known = new Map([...list.children].map((element) => [element.dataset.key, element]))
  let place = list.firstElementChild
  for (const item of items) {
    const before = known.get(item.key)
    const element = elementFor(item, before)
    known.delete(item.key)
    if (before !== undefined && before === place) place = element
    if (element === place) place = place.nextElementSibling
    else list.insertBefore(element, place)
  }
  for (const element of known.values()) element.remove()
}

const versions = new WeakMap()

function elementFor(item, before) {
  if (before !== undefined && versions.get(before) === item.version) return before
  let element = before
  if (before !== undefined && item.update !== undefined) item.update(before)
  else {
    element = item.make()
    element.dataset.key = item.key
    if (before !== undefined) replaceKept(before, element)
  }
  versions.set(element, item.version)
  return element
}

function replaceKept(before, after) {
  const open = before.matches('details') ? before.open : before.querySelector('details')?.open
  const details = after.matches('details') ? after : after.querySelector('details')
  if (open === true && details !== null) details.open = true
  before.replaceWith(after)
}

export const byId = (id) => document.getElementById(id)
