import { parseTree, valueOf } from '../base/json-tree.ts'
import type { JsonNode } from '../base/json-tree.ts'

export interface JsonText {
  readonly value: unknown
  /** Where the key at this path is (or the entry of a list, or the whole), as an offset into the text. */
  readonly offsets: ReadonlyMap<string, number>
}

export type Path = readonly (string | number)[]

export const pathKey = (path: Path): string => JSON.stringify(path)

export function parseJsonText(text: string): JsonText {
  const root = parseTree(text, { comments: false })
  const offsets = new Map([[pathKey([]), root.start]])
  addOffsets(offsets, root, [])
  return { value: valueOf(root), offsets }
}

function addOffsets(offsets: Map<string, number>, node: JsonNode, path: Path): void {
  if (node.kind === 'scalar') return
  const keys = node.kind === 'object' ? node.children.map(({ key }) => key) : [...node.children.keys()]
  for (const [index, child] of node.children.entries()) {
    const below = [...path, keys[index]!]
    offsets.set(pathKey(below), child.start)
    addOffsets(offsets, child.value, below)
  }
}
