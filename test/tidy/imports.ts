import { importsOf, resolveImport } from './syntax.ts'
import type { SourceFile } from './tree.ts'

/**
 * Which part of the house may import which. A part is a folder of `src`, or a file directly in it. What is not listed
 * is not allowed; a part always may import itself. If building shows a better house, change it and this table with it.
 */
const NOUNS = ['events', 'threads', 'runs', 'sessions', 'actions', 'schedule', 'tokens', 'workspace'] as const
const ADAPTERS = ['processes', 'model', 'tools', 'git'] as const

export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  base: [],
  // Knows what is secret and nothing else, so that whoever writes or shows something can ask it.
  secrets: ['base'],
  store: ['base'],

  // The nouns compose: finishing a run writes to its parent's inbox. What keeps them apart is the ban on cycles.
  events: ['base', 'store'],
  threads: ['base', 'store', ...NOUNS],
  runs: ['base', 'store', ...NOUNS],
  sessions: ['base', 'store', ...NOUNS],
  actions: ['base', 'store', ...NOUNS],
  schedule: ['base', 'store', ...NOUNS],
  tokens: ['base', 'store', 'events'],
  workspace: ['base', 'store', ...NOUNS],
  loop: ['base', 'secrets', 'store', ...NOUNS],

  // How command-line agents are started, and what they print: words alone, nobody is asked.
  clients: ['base', ...NOUNS],

  // Adapters see the loop's ports; the loop does not see them.
  processes: ['base', 'secrets'],
  model: ['base', 'store', 'events', 'loop'],
  tools: ['base', 'store', ...NOUNS, 'processes', 'loop'],
  git: ['base', 'processes'],

  // Tells people outside what needs them.
  notify: ['base', 'store', ...NOUNS, 'processes'],

  // What a worker does, told outside: wrappers around ports, so that nobody inside knows of it.
  telemetry: ['base', 'store', ...NOUNS, 'loop', 'define'],

  // A process that carries runs out: it drives the nouns and the adapters, and has no SQL of its own.
  workers: [
    'base',
    'secrets',
    'store',
    ...NOUNS,
    'loop',
    ...ADAPTERS,
    'notify',
    'clients',
    'config',
    'define',
    'telemetry',
  ],
  // A loop of the AI SDK, with what it does in the ledger: it sees a run through the port in `define`.
  'ai-sdk': ['base', 'define', 'loop', 'model', 'tools'],
  // Tools and agents that are values of a program.
  define: ['base', 'loop', 'model', 'tools', 'processes'],
  // What a person wrote down, read and checked.
  config: [
    'base',
    'secrets',
    'actions',
    'sessions',
    'clients',
    'workspace',
    'loop',
    'tools',
    'notify',
    'define',
    'telemetry',
  ],

  'runtime.ts': ['base', 'store', ...NOUNS, 'loop', ...ADAPTERS, 'notify', 'workers', 'config'],
  'index.ts': ['base', 'store', ...NOUNS, 'loop', ...ADAPTERS, 'workers', 'config', 'define', 'library', 'runtime.ts'],

  // What a program does with a runtime: no rules of its own either.
  library: ['base', 'store', ...NOUNS, 'loop', 'model', 'workers', 'config', 'define', 'processes', 'runtime.ts'],

  // The doors of the HTTP API as data, and the client that goes through them. A page uses it too, so it knows nobody.
  api: ['base'],
  // What an operator sees and does, the same behind every door.
  control: ['base', 'store', ...NOUNS, 'loop', 'model', 'processes', 'workers', 'runtime.ts', 'hooks', 'api'],

  // Doors: no rules of their own, and no SQL (below).
  server: ['base', 'store', ...NOUNS, 'runtime.ts', 'hooks', 'api', 'control'],
  hooks: ['base', 'secrets', 'store', ...NOUNS, 'clients', 'processes', 'runtime.ts'],
  // The tools for schedules are those that an agent of ours has.
  mcp: ['base', 'store', ...NOUNS, 'loop', 'tools', 'runtime.ts'],
  cli: [
    'base',
    'secrets',
    'store',
    ...NOUNS,
    'loop',
    ...ADAPTERS,
    'workers',
    'config',
    'runtime.ts',
    'api',
    'control',
    'server',
    'hooks',
    'mcp',
  ],

  testing: ['base', 'store', ...NOUNS, 'loop', ...ADAPTERS, 'runtime.ts'],
}

/** Narrower than a part: these files and packages have few users. A name that ends in a slash is a folder. */
export const ONLY_FOR: readonly { readonly what: string; readonly by: readonly string[] }[] = [
  {
    what: 'src/store/sql.ts',
    by: ['src/store/', ...[...NOUNS, 'model', 'tools', 'notify', 'testing'].map((noun) => `src/${noun}/`)],
  },
  { what: 'src/store/sqlite/', by: ['src/store/', 'src/runtime.ts', 'src/testing/'] },
  { what: 'src/store/postgres/', by: ['src/store/', 'src/runtime.ts', 'src/testing/'] },
  { what: 'src/store/migrations/', by: ['src/store/', 'src/runtime.ts', 'src/testing/'] },
  { what: 'node:sqlite', by: ['src/store/sqlite/'] },
  { what: 'pg', by: ['src/store/postgres/'] },
  // The demo starts the command line as its user would: what it shows must not rest on what it shows.
  { what: 'node:child_process', by: ['src/processes/', 'src/cli/demo/outside.ts'] },
  { what: 'commander', by: ['src/cli/'] },
  // Only the window speaks HTTP to others, and only `up` loads it.
  { what: 'hono', by: ['src/server/'] },
  { what: 'hono/', by: ['src/server/'] },
  { what: '@hono/node-server', by: ['src/server/'] },
  // Loading it takes longer than most commands: the schemas of the API are for the daemon alone.
  { what: 'zod', by: ['src/api/shapes/', 'src/api/routes.ts', 'src/server/'] },
  // The user's, if at all: loaded where somebody wants telemetry.
  { what: '@opentelemetry/api', by: ['src/telemetry/'] },
  { what: 'ai', by: ['src/ai-sdk/'] },
  { what: '@ai-sdk/provider', by: ['src/ai-sdk/'] },
  // Loaded by the command `mcp` alone.
  { what: '@modelcontextprotocol/server', by: ['src/mcp/serve.ts'] },
  { what: '@modelcontextprotocol/server/', by: ['src/mcp/serve.ts'] },
  { what: 'src/mcp/serve.ts', by: ['src/cli/clients/mcp.ts'] },
]

const isTest = (path: string) => path.endsWith('.test.ts')
const partOf = (path: string) => path.split('/')[1] ?? path
const isIn = (place: string, path: string) => (place.endsWith('/') ? path.startsWith(place) : path === place)

/** One sentence for each import in `src` that points the wrong way. Tests beside the source may import what they like. */
export function wrongImports(files: readonly SourceFile[]): string[] {
  const known = new Set(files.map((file) => file.path))
  return files
    .filter((file) => !isTest(file.path))
    .flatMap((file) => [
      ...(partOf(file.path) in MAY_IMPORT ? [] : [`${file.path}: src/${partOf(file.path)} is not in the table`]),
      ...importsOf(file).flatMap(({ specifier }) => complain(file.path, specifier, known)),
    ])
}

function complain(from: string, specifier: string, known: ReadonlySet<string>): string[] {
  const target = resolveImport(from, specifier)
  const what = target ?? specifier
  const complaints: string[] = []
  if (target !== undefined && !known.has(target))
    complaints.push(`${from} imports ${target}, which is not a file of src`)
  if (target !== undefined && known.has(target) && !mayImport(from, target)) {
    complaints.push(`${from} imports ${target}: ${partOf(from)} must not know ${partOf(target)}`)
  }
  const narrow = ONLY_FOR.find((rule) => isIn(rule.what, what))
  if (narrow !== undefined && !narrow.by.some((place) => isIn(place, from))) {
    complaints.push(`${from} imports ${what}, which is only for ${narrow.by.join(', ')}`)
  }
  return complaints
}

function mayImport(from: string, target: string): boolean {
  if (isTest(target)) return false
  return partOf(from) === partOf(target) || (MAY_IMPORT[partOf(from)] ?? []).includes(partOf(target))
}

/** The dashboard runs in a browser and knows the HTTP API alone: its table of doors, and the client that goes through them. */
export const PAGE_MAY_IMPORT: readonly string[] = ['src/api/client.ts', 'src/api/endpoints.ts', 'src/api/routes.ts']
const PAGE_PACKAGES = /^(preact(\/.+)?|@preact\/signals|uplot)$/

/** One sentence for each import in the dashboard that a page has no business with. */
export function wrongPageImports(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) =>
    importsOf(file).flatMap(({ specifier, typeOnly }) => {
      const target = resolveImport(file.path, specifier)
      if (target === undefined) return PAGE_PACKAGES.test(specifier) ? [] : [`${file.path} imports ${specifier}`]
      if (target.startsWith('dashboard/src/')) return []
      // The schemas are for the server: the page has their types, and no library to check them.
      const isFine = PAGE_MAY_IMPORT.includes(target) && (typeOnly || target !== 'src/api/routes.ts')
      return isFine ? [] : [`${file.path} imports ${target}: the dashboard knows the HTTP API alone`]
    }),
  )
}

/** The files that a file loads when it is loaded. */
export function loadedBy(file: SourceFile): string[] {
  return importsOf(file)
    .filter((each) => !each.typeOnly)
    .flatMap((each) => resolveImport(file.path, each.specifier) ?? [])
}

/** Each cycle of run-time imports once, as `a → b → a`. */
export function importCycles(files: readonly SourceFile[]): string[] {
  const graph = new Map(files.map((file) => [file.path, loadedBy(file)]))
  const cycles: string[] = []
  const finished = new Set<string>()
  const visit = (path: string, way: readonly string[]): void => {
    const before = way.indexOf(path)
    if (before !== -1) cycles.push([...way.slice(before), path].join(' → '))
    if (before !== -1 || finished.has(path)) return
    for (const next of graph.get(path) ?? []) visit(next, [...way, path])
    finished.add(path)
  }
  for (const path of graph.keys()) visit(path, [])
  return cycles
}
