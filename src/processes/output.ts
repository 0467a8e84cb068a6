import { open } from 'node:fs/promises'
import { secretsAt } from '../secrets/folders.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { StreamOpener } from '../secrets/stream.ts'
import { readSpec, spillPath } from './attempt-folder.ts'
import { DEFAULT_OUTPUT, type OutputLimits, type OutputText, type StreamName } from './command.ts'
import { OutputEnds } from './output-ends.ts'

/** A part of what a command printed, from the spill file as it is: the bytes `from` up to, not including, `to`. */
export async function readOutput(
  folder: string,
  stream: StreamName,
  range: { readonly from: number; readonly to: number },
): Promise<Buffer> {
  const file = await open(spillPath(folder, stream), 'r').catch(() => undefined)
  if (file === undefined) return Buffer.alloc(0)
  try {
    const { size } = await file.stat()
    const length = Math.max(Math.min(range.to, size) - range.from, 0)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, range.from)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** All that is on disk of what a command printed; undefined if it is not there. */
export async function readWholeOutput(folder: string, stream: StreamName): Promise<string | undefined> {
  const size = await spilledBytes(folder, stream)
  if (size === 0) return undefined
  const bytes = await readOutput(folder, stream, { from: 0, to: size })
  const secrets = secretsAt(folder)
  if (secrets === undefined) return bytes.toString('utf8')
  const opener = new StreamOpener(secrets)
  return Buffer.concat([opener.write(bytes), opener.end()]).toString('utf8')
}

/** What is on disk of the output of a command whose supervisor died. */
export async function readPartialOutput(folder: string): Promise<Readonly<Record<StreamName, OutputText>>> {
  const { output: limits, sealed } = readSpec(folder) ?? { output: DEFAULT_OUTPUT, sealed: false }
  const secrets = sealed ? secretsAt(folder) : undefined
  const [stdout, stderr] = await Promise.all([
    readEnds(folder, 'stdout', limits, secrets),
    readEnds(folder, 'stderr', limits, secrets),
  ])
  return { stdout, stderr }
}

async function readEnds(
  folder: string,
  stream: StreamName,
  limits: OutputLimits,
  secrets: Secrets | undefined,
): Promise<OutputText> {
  const ends = new OutputEnds(limits)
  const size = await spilledBytes(folder, stream)
  const opener = secrets === undefined ? undefined : new StreamOpener(secrets)
  for (let from = 0; from < size;) {
    const chunk = await readOutput(folder, stream, { from, to: from + 1024 * 1024 })
    if (chunk.length === 0) break
    ends.keep(opener?.write(chunk) ?? chunk)
    from += chunk.length
  }
  if (opener !== undefined) ends.keep(opener.end())
  const texts = ends.texts()
  return {
    ...texts,
    totalBytes: ends.totalBytes,
    spilledBytes: size,
    truncated: texts.truncated || size >= limits.spillBytes,
  }
}

async function spilledBytes(folder: string, stream: StreamName): Promise<number> {
  const file = await open(spillPath(folder, stream), 'r').catch(() => undefined)
  const size = (await file?.stat())?.size ?? 0
  await file?.close()
  return size
}
