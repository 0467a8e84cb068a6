import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'

import { Option } from 'commander'
import type { Command } from 'commander'

import { HoldfastError } from '../base/errors.ts'
import { createFileOnce, ensureFolder } from '../base/files.ts'
import { isClone } from '../base/place.ts'
import { shellWord } from '../base/text.ts'
import { MODEL } from '../config/agent.ts'
import { CLIENT_NAMES } from '../hooks/install/client.ts'
import type { ClientName } from '../hooks/install/client.ts'
import { readEnvironment } from './environment.ts'
import { EXIT } from './exit-code.ts'
import { CONFIG_NAMES } from './find-config.ts'
import type { SetExit } from './main.ts'
import { makeOutput, table } from './output.ts'

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
  if (flags.model !== undefined && !MODEL.test(flags.model)) throw notAModel(flags.model)
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
  makeOutput(flags.json === true).result({ folder, written }, () => whatNext(folder, folder === users, flags))
  return EXIT.done
}

const notAModel = (model: string) =>
  new HoldfastError('usage/model', `"${model}" is not the name of a model, and nothing was written`, {
    remedy: 'write it as anthropic/claude-sonnet-5: the provider first',
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
        command: ['sh', '-c', '{ cat; echo; } | tee -a notes.txt'],
      },
    },
    policy: [{ tool: 'note', decision: 'ask' }],
  },
})

function whatNext(folder: string, users: boolean, { model, client = [], home }: InitFlags): string {
  const holdfast = `${isClone ? './bin/holdfast' : 'holdfast'}${home === undefined ? '' : ` --home ${shellWord(home)}`}`
  // One that is merely found in a folder could be anybody's.
  const ours = users ? holdfast : `${holdfast} --config ${shellWord(join(folder, CONFIG))}`
  const steps = [
    [`${ours} up`, 'the daemon and its window, in a terminal of its own'],
    [`${ours} send --agent clerk "Buy milk."`, 'the agent wants to write, and waits for a yes'],
    [`${ours} approvals`, `say yes; then ${join(folder, 'notes.txt')} has it`],
    ...client.map((name) => [`${ours} send --agent ${name} --wait "Say hello."`, `${name}, as an agent`]),
    [`${holdfast} doctor`, 'whether everything is as it should be'],
  ]
  const key = model === undefined ? '' : `\n${model} needs its provider's package and key: docs/library.md\n`
  return `${join(folder, CONFIG)} is written: an agent "clerk" with one tool, and a rule that asks you before it writes.\n${key}\nNext:\n${table(
    steps[0]!,
    steps.slice(1),
  ).replaceAll(/^/gm, '  ')}`
}
