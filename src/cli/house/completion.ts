import { existsSync } from 'node:fs'

import type { Command } from 'commander'

import { homePaths } from '../../workers/home.ts'
import type { ProgramFor } from '../commands.ts'
import { candidatesAt, matching, nounOf, spotOf } from './complete.ts'
import type { Candidate, Spot } from './complete.ts'
import { withApi } from '../around/context.ts'
import { readEnvironment } from '../around/environment.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'
import { visibleLine } from '../words/output.ts'

export function addCompletion(own: Command, setExit: SetExit, programFor: ProgramFor): void {
  for (const [shell, { install, script }] of Object.entries(SHELLS)) {
    own
      .command(shell)
      .description(`for ${shell}: ${install}`)
      .action(() => {
        process.stdout.write(`# To have it in every shell: ${install}\n${script}`)
        setExit(EXIT.done)
      })
  }
  own
    .command('words', { hidden: true })
    .description('what may come next; the shell asks')
    .argument('[words...]', 'behind --: what stands behind holdfast, up to the cursor')
    .action(async (words: readonly string[]) => {
      const candidates = await answer(await programFor(words), words)
      process.stdout.write(candidates.map(asLine).join(''))
      setExit(EXIT.done)
    })
}

const asLine = ({ word, description }: Candidate) =>
  `${visibleLine(word)}\t${visibleLine(description.split('\n')[0] ?? '')}\n`

async function answer(program: Command, words: readonly string[]): Promise<Candidate[]> {
  const spot = spotOf(program, words)
  if (spot === undefined) return []
  const known = candidatesAt(spot)
  return known.length > 0 ? known : idsAt(program, words, spot)
}

/** A store that is not there is not made for this; one that does not answer has no ids to offer. */
async function idsAt(program: Command, words: readonly string[], spot: Spot): Promise<Candidate[]> {
  const { LISTERS } = await import('./complete-ids.ts')
  const list = LISTERS[nounOf(spot) ?? '']
  program.parseOptions([...words])
  const { home, store, url } = readEnvironment(program.opts<{ home?: string; store?: string }>())
  if (list === undefined || (url === undefined && store === undefined && !existsSync(homePaths(home).database)))
    return []
  let found: Candidate[] = []
  try {
    await withApi(program, async ({ api }) => {
      found = await list(api)
      return EXIT.done
    })
  } catch {
    // Nobody reads what a completion complains about; the command itself will say it.
  }
  return matching(found, spot.current)
}

const BASH = `
_holdfast() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <("\${COMP_WORDS[0]}" completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _holdfast holdfast
`

const ZSH = `
#compdef holdfast
_holdfast() {
  local line
  local -a found
  while IFS= read -r line; do
    found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done < <("\${words[1]}" completion words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#found} )); then _describe -V holdfast found; else _files; fi
}
compdef _holdfast holdfast
`

const FISH = `
function __holdfast_words
  set -l words (commandline -opc)
  set -l found ($words[1] completion words -- $words[2..-1] (commandline -ct) 2>/dev/null)
  if set -q found[1]
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c holdfast -f -a '(__holdfast_words)'
`

/** Each asks the command line itself, so it knows whatever that knows. */
const SHELLS = {
  bash: { install: `put \`eval "$(holdfast completion bash)"\` into ~/.bashrc`, script: BASH },
  zsh: {
    install: `put \`eval "$(holdfast completion zsh)"\` into ~/.zshrc, behind the line with compinit`,
    script: ZSH,
  },
  fish: { install: `put \`holdfast completion fish | source\` into ~/.config/fish/config.fish`, script: FISH },
} as const
