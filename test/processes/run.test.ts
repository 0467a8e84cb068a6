import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { readOutput } from '../../src/processes/output.ts'
import { describeEnd } from '../../src/processes/command.ts'
import {
  availableModes,
  begin,
  endOf,
  fixture,
  freshFolder,
  newMark,
  processesWith,
  run,
  sh,
  specOf,
} from './support.ts'

const modes = await availableModes()

test('at least one containment is available', () => {
  expect(modes.length).toBeGreaterThan(0)
})

describe.each(modes)('in containment %s', (containment) => {
  test.each([
    ['exit 0', 0, null],
    ['exit 3', 3, null],
    ['exit 137', 137, null],
    ['exit 127', 127, null],
    ['kill -SEGV $$', null, 'SIGSEGV'],
    ['kill -KILL $$', null, 'SIGKILL'],
    ['kill -TERM $$', null, 'SIGTERM'],
  ])('"%s" is reported as it was', async (script, exitCode, signal) => {
    const end = await run(specOf(sh(script), { containment }))
    expect(end).toMatchObject({ exitCode, signal, survivorsKilled: 0, containment: { kind: containment } })
    expect(end).not.toHaveProperty('stopped')
  })

  test('a command that is not there is 127, one that may not be executed 126', async () => {
    const [missing, folder] = await Promise.all([
      run(specOf(['no-such-program'], { containment })),
      run(specOf(['/tmp'], { containment })),
    ])
    expect(missing).toMatchObject({ exitCode: 127, spawnError: { code: 'ENOENT' } })
    expect(describeEnd(missing)).toBe('not found: no-such-program')
    expect(folder).toMatchObject({ exitCode: 126, spawnError: { message: 'not executable: /tmp' } })
  })

  test('a missing working folder is said to be missing', async () => {
    const end = await run(specOf(['true'], { containment, cwd: '/no/such/folder' }))
    expect(describeEnd(end)).toBe('no such folder: /no/such/folder')
  })

  test('folder, environment, arguments and both streams arrive as given', async () => {
    const cwd = `${freshFolder()} with blanks`
    mkdirSync(cwd)
    const env = { PATH: process.env.PATH ?? '', 'odd.name': 'kept', EMPTY: '' }
    const end = await run(specOf(sh('pwd; echo "[$1]" >/dev/stderr', 'a  "b" $c'), { containment, cwd, env }))
    expect(end).toMatchObject({ stdout: { head: `${cwd}\n` }, stderr: { head: '[a  "b" $c]\n' } })
    // Not through a shell: it would drop a variable with such a name.
    const bare = await run(specOf(['env'], { containment, cwd, env, mark: 'abc123' }))
    expect(
      bare.stdout.head
        .split('\n')
        .filter((line) => line !== '')
        .toSorted(),
    ).toEqual(['EMPTY=', 'HOLDFAST_MARK=abc123', `PATH=${env.PATH}`, 'odd.name=kept'])
  })

  test('the command gets no descriptor of ours', async () => {
    const live = { onStdout: () => {}, onStderr: () => {} }
    const end = await run(specOf(['/bin/ls', '/proc/self/fd'], { containment }), live)
    const inherited = await run(specOf(['/bin/ls', '/proc/self/fd'], { containment }))
    expect(end.stdout.head).toBe(inherited.stdout.head)
    expect(end.stdout.head.split('\n').slice(0, 4)).not.toContain('4')
  })

  test('a command inside a command is found by the mark of the outer one', async () => {
    const outer = newMark()
    process.env.HOLDFAST_MARK = outer
    try {
      const end = await run(specOf(sh('echo $HOLDFAST_MARK'), { containment, mark: 'abc123' }))
      expect(end.stdout.head).toBe(`${outer}.abc123\n`)
    } finally {
      delete process.env.HOLDFAST_MARK
    }
  })

  test('what is left behind after a normal end is killed and counted', async () => {
    const mark = newMark()
    const end = await run(
      specOf(sh('sleep 60 >/dev/null 2>&1 & sleep 60 >/dev/null 2>&1 & exit 0'), { containment, mark }),
    )
    expect(end).toMatchObject({ exitCode: 0, survivorsKilled: 2 })
    expect(processesWith(mark)).toEqual([])
  })
})

test('a script without an interpreter line that cannot be executed is 126', async () => {
  const file = `${freshFolder()}.script`
  writeFileSync(file, 'not a program')
  chmodSync(file, 0o644)
  expect(await run(specOf([file]))).toMatchObject({ exitCode: 126 })
})

test('a command reads what its worker would read if it is told to, and nothing otherwise', async () => {
  const started = spawn(process.execPath, [fixture('reading-worker.ts'), freshFolder(), freshFolder()])
  started.stdin.end('some input')
  const [printed] = (await once(started.stdout, 'data')) as [Buffer]
  expect(JSON.parse(printed.toString())).toEqual({ inherit: 'some input', none: '' })
})

test('long output is kept at both ends, and whole on disk', async () => {
  const output = { headBytes: 10, tailBytes: 10, spillBytes: 1_000_000 }
  const { folder, command } = await begin(specOf(sh('seq 100000'), { output }))
  const end = endOf(await command.ended)
  expect(end.stdout).toEqual({
    head: '1\n2\n3\n4\n5\n',
    tail: '99\n100000\n',
    truncated: true,
    totalBytes: 588_895,
    spilledBytes: 588_895,
  })
  const middle = await readOutput(folder, 'stdout', { from: 0, to: 588_895 })
  expect(middle.toString().split('\n')[50_000]).toBe('50001')
})

test('live readers get everything before the end is told', async () => {
  let bytes = 0
  const end = await run(specOf(sh('seq 100000; echo done >&2')), { onStdout: (chunk) => void (bytes += chunk.length) })
  expect(bytes).toBe(588_895)
  expect(end.stdout.totalBytes).toBe(588_895)
})

test('the environment, secrets included, is not left on disk once the command has it', async () => {
  const env = { PATH: process.env.PATH ?? '', API_KEY: 'planted-secret-7f3a' }
  const { folder, command } = await begin(specOf(sh('echo "${API_KEY#planted-}"'), { env }))
  expect(endOf(await command.ended)).toMatchObject({ stdout: { head: 'secret-7f3a\n' } })
  const files = readdirSync(folder).filter((name) => statSync(`${folder}/${name}`).isFile())
  expect(files).toContain('spec.json')
  for (const name of files) expect(readFileSync(`${folder}/${name}`, 'utf8')).not.toContain('planted-secret')
})
