import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import type { ClientName, Surroundings } from './client.ts'
import { factsOf } from './client.ts'
import { memberOf, parseTree, valueOf } from '../../base/json-tree.ts'
import type { JsonNode } from '../../base/json-tree.ts'

/** What keeps a client from running hooks that are installed: sentences for a person. */
export async function obstaclesOf(client: ClientName, path: string, surroundings: Surroundings): Promise<string[]> {
  if (client === 'codex') return codexObstacles(path)
  const files = [...new Set([path, factsOf(client).userFile(surroundings), ...MANAGED[client](surroundings)])]
  const found = await Promise.all(files.map(async (file) => ({ file, root: await treeOf(client, file) })))
  return found.flatMap(({ file, root }) =>
    root === undefined ? [] : SWITCHES[client].filter(({ off }) => off(root)).map(({ name }) => `${name} in ${file}`),
  )
}

const setTo =
  (value: unknown, ...keys: readonly string[]) =>
  (root: JsonNode) => {
    const node = keys.reduce<JsonNode | undefined>((at, key) => at && memberOf(at, key)?.value, root)
    return node !== undefined && valueOf(node) === value
  }

const isDisabledByName = (root: JsonNode) => {
  const names = memberOf(memberOf(root, 'hooksConfig')?.value ?? root, 'disabled')?.value
  const list = names === undefined ? undefined : valueOf(names)
  return Array.isArray(list) && list.includes('holdfast')
}

interface Switch {
  readonly name: string
  readonly off: (root: JsonNode) => boolean
}

const SWITCHES: Readonly<Record<'claude' | 'gemini', readonly Switch[]>> = {
  claude: [
    { name: '"disableAllHooks" is set', off: setTo(true, 'disableAllHooks') },
    { name: '"allowManagedHooksOnly" is set', off: setTo(true, 'allowManagedHooksOnly') },
  ],
  gemini: [
    { name: '"hooksConfig.enabled" is false', off: setTo(false, 'hooksConfig', 'enabled') },
    { name: '"hooksConfig.disabled" names "holdfast"', off: isDisabledByName },
  ],
}

/** What an administrator laid down for everybody on a machine. */
const MANAGED: Readonly<Record<'claude' | 'gemini', (surroundings: Surroundings) => readonly string[]>> = {
  claude: () =>
    process.platform === 'darwin'
      ? ['/Library/Application Support/ClaudeCode/managed-settings.json']
      : ['/etc/claude-code/managed-settings.json'],
  gemini: ({ variables }) => [
    variables['GEMINI_CLI_SYSTEM_SETTINGS_PATH'] ??
      (process.platform === 'darwin'
        ? '/Library/Application Support/GeminiCli/settings.json'
        : '/etc/gemini-cli/settings.json'),
  ],
}

async function treeOf(client: ClientName, path: string): Promise<JsonNode | undefined> {
  try {
    return parseTree(await readFile(path, 'utf8'), { comments: factsOf(client).comments })
  } catch {
    // Not there, or not ours to judge: the file that holds our entries is read, and complained of, elsewhere.
    return undefined
  }
}

/** Beside `hooks.json` is `config.toml`, and `[features] hooks = false` in it turns all of them off. */
async function codexObstacles(path: string): Promise<string[]> {
  const file = join(dirname(path), 'config.toml')
  const text = await readFile(file, 'utf8').catch(() => '')
  const features = /^\[features\][^]*?(?=^\[|$(?![^]))/m.exec(text)?.[0] ?? ''
  const off = /^\s*(?:codex_)?hooks\s*=\s*false\b/m.test(features) || /^\s*features\.hooks\s*=\s*false\b/m.test(text)
  return off ? [`"features.hooks" is false in ${file}`] : []
}
