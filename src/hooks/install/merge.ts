import { isDeepStrictEqual } from 'node:util'

import { HoldfastError } from '../../base/errors.ts'
import { eventOf, isOurs, slotOf } from './entries.ts'
import type { Handler } from './entries.ts'
import { append, replaceValue, styleOf, without } from './json-edit.ts'
import { JsonSyntaxError, lineAndColumn, memberOf, parseTree, valueOf } from '../../base/json-tree.ts'
import type { ContainerNode, JsonNode, ListNode, ObjectNode } from '../../base/json-tree.ts'

/** A settings file as text: its name for messages, and whether it may have comments. */
export interface Settings {
  readonly path: string
  readonly text: string
  readonly comments: boolean
}

/** One handler of ours, and where it stands. */
export interface Found {
  readonly event: string
  /** Which of our entries it is. */
  readonly slot: string
  readonly group: number
  readonly index: number
  readonly handler: Handler
  readonly matcher: unknown
}

/** An empty file says nothing, and nothing of it can be lost. */
const NOTHING = '{}\n'

export function readTree({ path, text, comments }: Settings): ObjectNode {
  try {
    const root = parseTree(text.trim() === '' ? NOTHING : text, { comments })
    if (root.kind === 'object') return root
    throw new JsonSyntaxError('an object in braces is expected', root.start)
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    const { line } = lineAndColumn(text, error.offset)
    throw new HoldfastError('hooks/not-json', `${path} is not valid: line ${line}: ${error.message}`, {
      remedy: 'mend it first; nothing was changed',
    })
  }
}

/** Every handler of ours in these settings. */
export function findOurs(root: ObjectNode): Found[] {
  const hooks = memberOf(root, 'hooks')?.value
  if (hooks?.kind !== 'object') return []
  return hooks.children.flatMap(({ key: event, value }) =>
    listOf(value).flatMap((item, group) =>
      listOf(memberOf(item.value, 'hooks')?.value).flatMap((handlerItem, index) => {
        const handler = valueOf(handlerItem.value)
        const matcher = memberOf(item.value, 'matcher')?.value
        return isOurs(handler)
          ? [
              {
                event,
                slot: slotOf(event, handler),
                group,
                index,
                handler,
                matcher: matcher === undefined ? undefined : valueOf(matcher),
              },
            ]
          : []
      }),
    ),
  )
}

const listOf = (node: JsonNode | undefined) => (node?.kind === 'list' ? node.children : [])

/** A matcher that lets everything through, in the ways that clients know. */
export const isEverything = (matcher: unknown) => matcher === undefined || ['', '*', '.*'].includes(matcher as string)

/** The text with our entries as they are wanted; the same text if they are. */
export function withEntries(settings: Settings, wanted: ReadonlyMap<string, Handler>): string {
  let text = settings.text.trim() === '' ? NOTHING : settings.text
  for (;;) {
    const root = readTree({ ...settings, text })
    refuseOddShapes(settings.path, root, wanted)
    const next = withoutSuperfluous(text, root, wanted) ?? withOneMore(text, root, wanted)
    if (next === undefined) return text === NOTHING ? settings.text : text
    text = next
  }
}

/** The text without our entries. What is empty afterwards goes too, unless it was there before us. */
export function withoutEntries(settings: Settings, formerly?: unknown): string {
  let { text } = settings
  for (;;) {
    const root = readTree({ ...settings, text })
    const [found] = findOurs(root)
    if (found === undefined) return text
    text = withoutHandler(text, root, found, (path) => containerAt(formerly, path))
  }
}

function withoutSuperfluous(text: string, root: ObjectNode, wanted: ReadonlyMap<string, Handler>): string | undefined {
  const ours = findOurs(root)
  const superfluous = ours.find(
    (found) =>
      !wanted.has(found.slot) ||
      !isEverything(found.matcher) ||
      ours.find(({ slot, matcher }) => slot === found.slot && isEverything(matcher)) !== found,
  )
  return superfluous === undefined ? undefined : withoutHandler(text, root, superfluous, () => false)
}

function withOneMore(text: string, root: ObjectNode, wanted: ReadonlyMap<string, Handler>): string | undefined {
  const style = styleOf(text, root)
  const ours = findOurs(root)
  const other = ours.find(({ slot, handler }) => !isDeepStrictEqual(handler, wanted.get(slot)))
  if (other !== undefined) return replaceValue(text, nodeOf(root, other), wanted.get(other.slot), style)
  const missing = [...wanted].filter(([slot]) => !ours.some((found) => found.slot === slot))
  const [first] = missing
  if (first === undefined) return undefined
  const groups = Map.groupBy(missing, ([slot]) => eventOf(slot))
  const hooks = memberOf(root, 'hooks')?.value as ObjectNode | undefined
  if (hooks === undefined) {
    const entries = [...groups].map(([event, slots]) => [event, slots.map(([, handler]) => ({ hooks: [handler] }))])
    return append(text, root, { key: 'hooks', value: Object.fromEntries(entries) }, style)
  }
  const [slot, handler] = first
  const event = eventOf(slot)
  // At the end: Codex remembers by position which hooks of others it may run.
  const list = memberOf(hooks, event)?.value as ListNode | undefined
  if (list !== undefined) return append(text, list, { value: { hooks: [handler] } }, style)
  return append(text, hooks, { key: event, value: [{ hooks: [handler] }] }, style)
}

type Path = readonly (string | number)[]

/** Takes a handler out, and then each container around it that this left empty. */
function withoutHandler(text: string, root: ObjectNode, found: Found, stays: (path: Path) => boolean): string {
  const hooks = memberOf(root, 'hooks')!.value as ObjectNode
  const list = memberOf(hooks, found.event)!.value as ListNode
  const group = list.children[found.group]!.value as ObjectNode
  const handlers = memberOf(group, 'hooks')!.value as ListNode
  if (handlers.children.length > 1) return without(text, handlers, found.index)
  if (list.children.length > 1 || stays(['hooks', found.event])) return without(text, list, found.group)
  if (hooks.children.length > 1 || stays(['hooks'])) return without(text, hooks, indexOf(hooks, found.event))
  return without(text, root, indexOf(root, 'hooks'))
}

const indexOf = (node: ObjectNode, key: string) => node.children.findIndex((member) => member.key === key)

function nodeOf(root: ObjectNode, { event, group, index }: Found): JsonNode {
  const list = memberOf(memberOf(root, 'hooks')!.value, event)!.value as ContainerNode
  const handlers = memberOf(list.children[group]!.value, 'hooks')!.value as ContainerNode
  return handlers.children[index]!.value
}

function containerAt(value: unknown, path: Path): boolean {
  const there = path.reduce<unknown>(
    (inside, key) =>
      typeof inside === 'object' && inside !== null && Object.hasOwn(inside, key)
        ? (inside as Record<string, unknown>)[key]
        : undefined,
    value,
  )
  return typeof there === 'object' && there !== null
}

/** What we do not understand we do not change. */
function refuseOddShapes(path: string, root: ObjectNode, wanted: ReadonlyMap<string, Handler>): void {
  const hooks = memberOf(root, 'hooks')?.value
  const odd =
    hooks !== undefined && hooks.kind !== 'object'
      ? 'hooks'
      : [...wanted.keys()]
          .map(eventOf)
          .find((event) => hooks !== undefined && (memberOf(hooks, event)?.value.kind ?? 'list') !== 'list')
  if (odd === undefined) return
  throw new HoldfastError('hooks/unexpected-shape', `"${odd}" in ${path} is not what the client expects there`, {
    remedy: 'mend it first; nothing was changed',
  })
}
