import { fileURLToPath } from 'node:url'

import { defineConfig } from 'tsdown'

/** What is imported or started by its name; `modulePath` in src/base/place.ts finds the started ones. */
const ENTRIES = [
  'src/index.ts',
  'src/testing/index.ts',
  'src/ai-sdk/index.ts',
  'src/cli/main.ts',
  'src/processes/supervisor-main.ts',
  'src/hooks/program.ts',
]

/**
 * Loading a file costs more than what is in it: as one file for each module, `import 'holdfast'` would load 180. So what
 * these load is gathered in a file each; a module goes to the first that loads it. The order is that of how quick they must be.
 */
const GATHERED = {
  supervisor: 'src/processes/supervisor-main.ts',
  'command-line': 'src/cli/main.ts',
  runtime: 'src/index.ts',
  configuration: 'src/config/load.ts',
  library: 'src/library/doors.ts',
} as const

/** What one of the quickest shares with the library: neither is to load the other, which starts processes. */
const SHARED = {
  name: 'base',
  by: 'src/index.ts',
  with: ['src/processes/supervisor-main.ts', 'src/cli/main.ts'],
} as const

interface Modules {
  getModuleInfo(id: string): { readonly importedIds: readonly string[] } | null
}

const idOf = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const SOURCES = idOf('src/')
const ENTRY_IDS: ReadonlySet<string> = new Set(ENTRIES.map(idOf))

/** What loads when an entry loads; what it asks for later is not part of it. */
function loadedBy(entry: string, modules: Modules): ReadonlySet<string> {
  const found = new Set([idOf(entry)])
  for (const id of found) {
    for (const next of modules.getModuleInfo(id)?.importedIds ?? []) if (next.startsWith(SOURCES)) found.add(next)
  }
  return found
}

type Gathers = (modules: Modules) => ReadonlySet<string>

const shared: Gathers = (modules) => {
  const others = SHARED.with.map((entry) => loadedBy(entry, modules))
  return new Set([...loadedBy(SHARED.by, modules)].filter((id) => others.some((ids) => ids.has(id))))
}

/** By their priority: without one, a later group would take along whatever it shares with an earlier one. */
function gathered() {
  const groups: [string, Gathers][] = [[SHARED.name, shared]]
  for (const [name, entry] of Object.entries(GATHERED)) groups.push([name, (modules) => loadedBy(entry, modules)])
  return groups.map(([name, gathers], index) => {
    let ids: ReadonlySet<string> | undefined
    return {
      priority: groups.length - index,
      name(id: string, modules: Modules): string | null {
        ids ??= gathers(modules)
        // An entry does something when it is loaded: nobody else may load it along with what they need.
        return !ENTRY_IDS.has(id) && ids.has(id) ? name : null
      },
    }
  })
}

/**
 * Named parts of Node, asked for directly: for an `import` Node looks at every name that such a module has, and of `node:fs` that
 * loads its streams, 4 ms that most commands do not need. On its own line as before, so that the source maps stay true.
 */
const builtinsAtHand = {
  name: 'builtins-at-hand',
  renderChunk: (code: string) => ({
    code: code.replace(
      /^import \{([^}]*)\} from "(node:[a-z_/]+)";$/gm,
      (_, names: string, name: string) =>
        `const {${names.replaceAll(' as ', ': ')}} = process.getBuiltinModule("${name}");`,
    ),
    map: null,
  }),
}

/** With one letter beyond Latin-1 in it, Node keeps a whole file in two bytes a letter: half a megabyte more of an `import 'holdfast'`. */
const inAscii = {
  name: 'in-ascii',
  // What is printed last has its letters as they are.
  generateBundle(_: unknown, bundle: Readonly<Record<string, { type: string; code?: string }>>) {
    for (const file of Object.values(bundle)) {
      // Half of a letter at a time: a letter that has two is written as two.
      const escaped = file.code?.replaceAll(
        /[\u0080-\uffff]/g,
        (half) => `\\u${half.charCodeAt(0).toString(16).padStart(4, '0')}`,
      )
      if (file.type === 'chunk' && escaped !== undefined) file.code = escaped
    }
  },
}

export default defineConfig({
  entry: ENTRIES,
  plugins: [builtinsAtHand, inAscii],
  // The programs of the demo are no modules of ours: they are started.
  copy: [{ from: 'src/cli/demo/*.mjs', to: 'dist/cli/demo' }],
  // Comments are a fifth of what would have to be read; the types keep theirs.
  outputOptions: { comments: { jsdoc: false }, codeSplitting: { groups: gathered() } },
  // The tests have no types to be published.
  tsconfig: 'src/tsconfig.json',
  format: 'esm',
  platform: 'node',
  fixedExtension: false,
  target: 'node24',
  dts: true,
  sourcemap: true,
  clean: true,
})
