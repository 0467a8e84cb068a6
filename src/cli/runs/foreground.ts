import type { StartOptions } from '../../processes/start-command.ts'

/** Whether whoever reads our output has gone away. */
export function brokenPipe(): { readonly onBroken: () => void; readonly broken: Promise<void> } {
  let onBroken = () => {}
  const broken = new Promise<void>((resolve) => (onBroken = resolve))
  return { onBroken, broken }
}

/**
 * A foreground command reads and writes as if it had been started directly. A terminal is not passed on as input,
 * because the command runs in a session of its own and could not read from it. With `--json` standard output is for
 * the result alone.
 */
export function terminal(json: boolean, onBroken: () => void): StartOptions {
  const write = (stream: NodeJS.WriteStream) => (chunk: Buffer) =>
    new Promise<void>((resolve) => {
      stream.write(chunk, (error) => {
        if (error != null) onBroken()
        resolve()
      })
    })
  for (const stream of [process.stdout, process.stderr]) stream.on('error', onBroken)
  return {
    stdin: process.stdin.isTTY ? 'none' : 'inherit',
    onStdout: write(json ? process.stderr : process.stdout),
    onStderr: write(process.stderr),
  }
}
