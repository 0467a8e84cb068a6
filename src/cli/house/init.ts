import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'

import { Option } from 'commander'
import type { Command } from 'commander'

import { HoldfastError } from '../../base/errors.ts'
import { createFileOnce, ensureFolder } from '../../base/files.ts'
import { isClone } from '../../base/place.ts'
import { shellWord } from '../../base/text.ts'
import { CLIENT_NAMES } from '../../hooks/install/client.ts'
import type { ClientName } from '../../hooks/install/client.ts'
import { readEnvironment } from '../around/environment.ts'
import { EXIT } from '../words/exit-code.ts'
import { CONFIG_NAMES } from '../around/find-config.ts'
import type { SetExit } from '../main.ts'
import { makeOutput, table } from '../words/output.ts'

interface InitFlags {
  readonly home?: string
  readonly json?: boolean
  readonly model?: string
  readonly client?: readonly ClientName[]
}

export function addInit(own: Command, setExit: SetExit): void {
  own
    .option('--model <model>', 'as anthropic/claude-sonnet-5 (default: a script, which needs no key)')
    .addOption(new Option('--client <name...>', 'a command-line agent to have as an agent too').choices(CLIENT_NAMES))
    .action(async (folder: string | undefined, _: unknown, command: Command) =>
      setExit(await init(folder, command.optsWithGlobals<InitFlags>())),
    )
}

const CONFIG = 'holdfast.config.json'
const SCRIPT = 'clerk.json'

/** The configuration comes last: whoever finds it finds what it names. */
async function init(given: string | undefined, flags: InitFlags): Promise<number> {
  const needs = flags.model === undefined ? undefined : await needsOfModel(flags.model)
  const users = readEnvironment(flags).configFolder
  const folder = given === undefined ? users : resolve(given)
  const files = [...(flags.model === undefined ? [{ name: SCRIPT, content: REPLIES }] : []), configFile(flags)]
  refuseSecond(folder, [...CONFIG_NAMES, ...files.map(({ name }) => name)])
  await ensureFolder(folder)
  for (const { name, content } of files) {
    const path = join(folder, name)
    const text = `${JSON.stringify(content, null, 2)}\n`
    if ((await createFileOnce(path, text, { mode: 0o644 })) === 'exists') throw alreadyThere(path)
  }
  const written = files.map(({ name }) => join(folder, name))
  makeOutput(flags.json === true).result({ folder, written }, () => whatNext(folder, folder === users, flags, needs))
  return EXIT.done
}

/** One that no provider of ours has is refused as well: the first message to its agent would be too late to say so. */
async function needsOfModel(model: string): Promise<Needs> {
  const [{ needsOf }, { MODEL }] = await Promise.all([
    import('../../model/providers.ts'),
    import('../../config/agent.ts'),
  ])
  if (!MODEL.test(model)) throw notAModel(model)
  try {
    return needsOf(model)
  } catch {
    throw notAModel(model)
  }
}

type Needs = { readonly package: string; readonly key: string | undefined } | undefined

const notAModel = (model: string) =>
  new HoldfastError('usage/model', `"${model}" names no model that is known here, and nothing was written`, {
    remedy: 'write anthropic/MODEL, openai/MODEL, openai-compatible:URL/MODEL or scripted:PATH',
  })

function refuseSecond(folder: string, names: readonly string[]): void {
  const there = names.map((name) => join(folder, name)).find((path) => existsSync(path))
  if (there !== undefined) throw alreadyThere(there)
}

const alreadyThere = (path: string) =>
  new HoldfastError('files/exists', `${path} is there already, and was left as it is`, {
    remedy: 'edit it; or name another folder: `holdfast init FOLDER`',
  })

/** Says what it was told into a file, once a person has said yes; any number of times. */
const REPLIES = {
  repeat: true,
  replies: [
    {
      text: 'I would like to write that down.',
      toolCalls: [{ tool: 'note', input: { entry: '{{message}}' } }],
      usage: { inputTokens: 120, outputTokens: 20 },
    },
    { text: 'notes.txt has what you said yes to, once.', usage: { inputTokens: 160, outputTokens: 10 } },
  ],
}

const configFile = ({ model = `scripted:./${SCRIPT}`, client = [] }: InitFlags) => ({
  name: CONFIG,
  content: {
    agents: {
      clerk: { model, system: 'You keep notes. Write down what you are told.', tools: ['note'] },
      ...Object.fromEntries(client.map((name) => [name, { client: name, permissions: 'read' }])),
    },
    tools: {
      note: {
        effect: 'write',
        description: 'Append one entry to notes.txt',
        input: { type: 'object', properties: { entry: { type: 'string' } }, required: ['entry'] },
        // In one write: whoever looks meanwhile sees no line without its end.
        command: ['sh', '-c', String.raw`printf '%s\n' "$(cat)" | tee -a notes.txt`],
      },
    },
    policy: [{ tool: 'note', decision: 'ask' }],
  },
})

function whatNext(folder: string, users: boolean, { client = [], home }: InitFlags, needs: Needs): string {
  const holdfast = `${isClone ? './bin/holdfast' : 'holdfast'}${home === undefined ? '' : ` --home ${shellWord(home)}`}`
  // One that is merely found in a folder could be anybody's.
  const ours = users ? holdfast : `${holdfast} --config ${shellWord(join(folder, CONFIG))}`
  const steps = [
    ...needed(folder, needs),
    [`${ours} up`, 'the daemon and its window, in a terminal of its own'],
    [`${ours} send --agent clerk "Buy milk."`, 'the agent wants to write, and waits for a yes'],
    [`${ours} approvals`, `say yes; then ${join(folder, 'notes.txt')} has it`],
    ...client.map((name) => [`${ours} send --agent ${name} --wait "Say hello."`, `${name}, as an agent`]),
    [`${ours} doctor`, 'whether everything is as it should be'],
  ]
  const others = client.map((name) => `"${name}"`).join(' and ')
  const besides = client.length === 0 ? '' : `; and ${others}, with "permissions" to read`
  return `${join(folder, CONFIG)} is written: an agent "clerk" with one tool, and a rule that asks you before it writes${besides}.\n\nNext:\n${table(
    steps[0]!,
    steps.slice(1),
  ).replaceAll(/^/gm, '  ')}`
}

/** The package is looked for beside the configuration, and beside Holdfast, where a clone has it. */
function needed(folder: string, needs: Needs): string[][] {
  if (needs === undefined) return []
  const install = `npm install --prefix ${shellWord(folder)} ${needs.package}`
  return [
    ...(isClone ? [] : [[install, 'the package of its provider']]),
    ...(needs.key === undefined ? [] : [[`export ${needs.key}=…`, 'your key, in the terminal of the daemon']]),
  ]
}
