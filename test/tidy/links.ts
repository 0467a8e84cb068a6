import { dirname, join } from 'node:path/posix'

import type { SourceFile } from './tree.ts'

export interface Link {
  readonly place: string
  /** The file it leads to, from the root, and the heading in it. */
  readonly path: string
  readonly anchor: string | undefined
}

const FENCED = /^ {0,3}(`{3,}|~{3,})[^]*?^ {0,3}\1`*\s*$/gm

/** Same number of lines, nothing in them. */
const blanked = (text: string) => text.replaceAll(/[^\n]/g, ' ')

const prose = ({ text }: SourceFile) => text.replaceAll(FENCED, blanked).replaceAll(/`[^`\n]+`/g, blanked)

/** The links of a document that stay in the repository: `[words](path#heading)`, and those of pictures. */
export function linksIn(file: SourceFile): Link[] {
  return prose(file)
    .split('\n')
    .flatMap((line, index) =>
      Array.from(line.matchAll(/(?:\]\(|(?:src|srcset)=")([^)"\s]+)/g), ([, target = '']) => target)
        .filter((target) => !/^[a-z]+:/.test(target))
        .map((target) => {
          const [path = '', anchor] = target.split('#')
          const led = path === '' ? file.path : join(dirname(file.path), path)
          return { place: `${file.path}:${index + 1}`, path: led.replace(/\/$/, ''), anchor }
        }),
    )
}

/** The names under which headings can be linked to, as GitHub makes them. */
export function anchorsIn(file: SourceFile): Set<string> {
  const seen = new Map<string, number>()
  const titles = Array.from(
    file.text.replaceAll(FENCED, blanked).matchAll(/^#{1,6} (.+)$/gm),
    ([, title = '']) => title,
  )
  return new Set(
    titles.map((title) => {
      const words = title
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .trim()
        .toLowerCase()
      const name = words.replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(/\s/g, '-')
      const count = seen.get(name) ?? 0
      seen.set(name, count + 1)
      return count === 0 ? name : `${name}-${count}`
    }),
  )
}

/** One sentence for each link that leads nowhere. `isThere`: whether a path is a file or a folder. */
export function deadLinks(documents: readonly SourceFile[], isThere: (path: string) => boolean): string[] {
  const byPath = new Map(documents.map((document) => [document.path, document]))
  return documents.flatMap(linksIn).flatMap(({ place, path, anchor }) => {
    if (!isThere(path)) return [`${place}: there is no ${path}`]
    const document = byPath.get(path)
    if (anchor === undefined || document === undefined) return []
    return anchorsIn(document).has(anchor) ? [] : [`${place}: ${path} has no heading #${anchor}`]
  })
}

/** Pages that nobody would find: no other page leads to them. */
export function unreachable(documents: readonly SourceFile[], from: string): string[] {
  const links = new Map(documents.map((document) => [document.path, linksIn(document).map(({ path }) => path)]))
  const [seen, waiting] = [new Set<string>(), [from]]
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path)) continue
    seen.add(path)
    waiting.push(
      ...(links.get(path) ?? []),
      ...(links.get(`${path}/README.md`) === undefined ? [] : [`${path}/README.md`]),
    )
  }
  return documents.map(({ path }) => path).filter((path) => path.startsWith('docs/') && !seen.has(path))
}
