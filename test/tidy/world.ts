import { allNodes, dottedName, importsOf, lineCounter, parse } from './syntax.ts'
import type { SourceFile } from './tree.ts'

/**
 * Time, chance and the machine come in through ports, so that a test or a simulation can own them. These are the
 * places that touch the real ones. A name that ends in a slash is a folder.
 */
export const WORLD: readonly { readonly names: readonly string[]; readonly only: readonly string[] }[] = [
  { names: ['Date.now', 'performance.now', 'process.uptime'], only: ['src/base/clock.ts'] },
  // Files: a part of the unique name of a temporary file, which nobody ever reads again.
  { names: ['process.hrtime'], only: ['src/base/clock.ts', 'src/base/files.ts'] },
  { names: ['setTimeout', 'setInterval'], only: ['src/base/clock.ts'] },
  // Not a delay but "after what is ready now": the group commit gathers its members by it.
  { names: ['setImmediate'], only: ['src/base/clock.ts', 'src/store/'] },
  { names: ['AbortSignal.timeout', 'Atomics.wait'], only: ['src/base/clock.ts'] },
  { names: ['Math.random', 'crypto.randomUUID', 'crypto.getRandomValues'], only: ['src/base/ids.ts'] },
  { names: ['process.env'], only: ['src/cli/', 'src/library/', 'src/hooks/', 'src/processes/'] },
  { names: ['process.kill'], only: ['src/processes/'] },
]

/** The same through an import: whole modules, or single names of `node:crypto`. */
export const WORLD_MODULES: readonly { readonly modules: readonly string[]; readonly only: readonly string[] }[] = [
  { modules: ['node:timers', 'node:timers/promises', 'node:perf_hooks'], only: ['src/base/clock.ts'] },
  // The demo's is that of the command line's user.
  { modules: ['node:child_process', 'node:cluster'], only: ['src/processes/', 'src/cli/demo/outside.ts'] },
  { modules: ['node:process'], only: [] },
]

const CHANCE_FROM_CRYPTO = /^random|^getRandomValues$|^webcrypto$/
/** The secrets' own: their key, and a word that nobody may guess. */
const MAY_DRAW_LOTS = ['src/base/ids.ts', 'src/secrets/']

const isIn = (places: readonly string[], path: string) =>
  places.some((place) => (place.endsWith('/') ? path.startsWith(place) : path === place))

/** One sentence for each touch of the world outside its adapter. */
export function straysInto(files: readonly SourceFile[]): string[] {
  return files
    .filter((file) => !file.path.endsWith('.test.ts'))
    .flatMap((file) => [...namesIn(file), ...modulesIn(file)])
}

function namesIn(file: SourceFile): string[] {
  const program = parse(file)
  const lineAt = lineCounter(file.text)
  const sentences = ['MemberExpression', 'CallExpression', 'NewExpression'].flatMap((type) =>
    allNodes(program, type).flatMap((node) => {
      const name = type === 'MemberExpression' ? dottedName(node) : calledName(node)
      const rule = WORLD.find((each) => name !== undefined && each.names.includes(name.replace(/^globalThis\./, '')))
      const today = name === 'new Date()' && !isIn(['src/base/clock.ts'], file.path)
      const astray = rule !== undefined && !isIn(rule.only, file.path)
      return today || astray
        ? [`${file.path}:${lineAt(node.start)} uses ${name}, which belongs to ${places(rule?.only)}`]
        : []
    }),
  )
  return [...new Set(sentences)]
}

/** `setTimeout` of `setTimeout(…)`; `new Date()` only without arguments, when it reads the clock. */
function calledName(node: ReturnType<typeof parse>): string | undefined {
  const name = dottedName(node['callee'])
  if (node.type === 'CallExpression') return name
  return name === 'Date' && (node['arguments'] as unknown[]).length === 0 ? 'new Date()' : undefined
}

function modulesIn(file: SourceFile): string[] {
  const modules = importsOf(file).flatMap(({ specifier, typeOnly }) => {
    const rule = WORLD_MODULES.find((each) => each.modules.includes(specifier))
    if (rule === undefined || typeOnly || isIn(rule.only, file.path)) return []
    return [`${file.path} imports ${specifier}, which belongs to ${places(rule.only)}`]
  })
  return [...modules, ...chanceIn(file)]
}

function chanceIn(file: SourceFile): string[] {
  if (isIn(MAY_DRAW_LOTS, file.path)) return []
  return [...new Set([...importedChance(file), ...lazyChance(file)])].map(
    (name) => `${file.path} takes ${name} from node:crypto, which belongs to ${places(MAY_DRAW_LOTS)}`,
  )
}

function importedChance(file: SourceFile): string[] {
  return allNodes(parse(file), 'ImportDeclaration')
    .filter((node) => (node['source'] as { value?: unknown }).value === 'node:crypto')
    .flatMap((node) => node['specifiers'] as readonly { readonly imported?: { readonly name?: string } }[])
    .map((specifier) => specifier.imported?.name ?? 'webcrypto')
    .filter((name) => CHANCE_FROM_CRYPTO.test(name))
}

/** Where it is loaded when it is needed, nothing says which names are its own: `randomBytes` and the like can be no other's. */
function lazyChance(file: SourceFile): string[] {
  if (!/getBuiltinModule\(\s*'(node:)?crypto'/.test(file.text)) return []
  return allNodes(parse(file), 'Identifier')
    .map((node) => String(node['name']))
    .filter((name) => /^random[A-Z]|^getRandomValues$|^webcrypto$/.test(name))
}

const places = (only: readonly string[] = ['src/base/clock.ts']) => (only.length === 0 ? 'nobody' : only.join(', '))
