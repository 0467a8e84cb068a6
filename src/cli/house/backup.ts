import { existsSync } from 'node:fs'
import { chmod, link, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'

import type { Command } from 'commander'

import { HoldfastError } from '../../base/errors.ts'
import { errorCode, syncFolder } from '../../base/files.ts'
import { secretsAt } from '../../secrets/folders.ts'
import { hasSealed } from '../../secrets/in-file.ts'
import { withRuntime } from '../around/context.ts'
import type { Context } from '../around/context.ts'
import { EXIT } from '../words/exit-code.ts'
import type { SetExit } from '../main.ts'

export function addBackup(own: Command, setExit: SetExit): void {
  own.action(async (file: string, _: unknown, command: Command) =>
    setExit(await withRuntime(command, (context) => backup(context, resolve(file)), 'beside')),
  )
}

/** Under another name first: whoever finds the file finds a whole one. */
async function backup({ runtime, output }: Context, file: string): Promise<number> {
  if (!existsSync(dirname(file))) {
    throw new HoldfastError('usage/no-folder', `the folder ${dirname(file)} does not exist`, {
      remedy: 'make it, or name a file in another one',
    })
  }
  const unfinished = join(dirname(file), `.${basename(file)}.${runtime.random.hex(8)}.tmp`)
  try {
    await runtime.store.copyTo(unfinished)
    await chmod(unfinished, 0o600)
    await link(unfinished, file)
    await syncFolder(dirname(file))
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
    throw new HoldfastError('files/exists', `${file} is there already`, {
      remedy: 'choose another name; a backup overwrites nothing',
      cause: error,
    })
  } finally {
    await unlink(unfinished).catch(() => {})
  }
  const { size } = await stat(file)
  output.result({ file, bytes: size }, () => `${file} (${size} bytes)`)
  output.note(await aboutTheKey(runtime.home, file))
  return EXIT.done
}

/** There is none until there was something to seal; or it is where the daemon looks for it, and not where this shell does. */
async function aboutTheKey(home: string, file: string): Promise<string> {
  const key = secretsAt(home)?.key.place.path
  if (key !== undefined && existsSync(key))
    return `secrets in it are sealed; the key is not in it, so keep a copy of ${key} elsewhere`
  return (await hasSealed(file)) ? ELSEWHERE : 'nothing in it is sealed: no key was needed here so far'
}

const ELSEWHERE =
  'secrets in it are sealed under a key that is not here; keep the file that HOLDFAST_SECRET_KEY_FILE names where the daemon runs'
