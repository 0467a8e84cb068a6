import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { oursIn } from './matrix.ts'
import { WorkStage } from './work-stage.ts'

/** What an agent does in its tree with git, beside the one line that it writes. What it leaves uncommitted counts as much as what it commits. */
const MESSES: Readonly<Record<string, string>> = {
  'commits, and goes on': 'git commit -qam mine; echo more >> a.txt',
  'resets hard to before its own commit':
    'git commit -qam mine; git reset -q --hard HEAD~1; echo more >> a.txt; echo again >> a.txt',
  'rewrites history': 'git commit -q --amend --allow-empty -m rewritten; git commit -qam mine',
  'makes a history of its own': 'git checkout -q --orphan lonely; git add -A; git commit -qm alone',
  'deletes .git': 'rm -rf "$(git rev-parse --absolute-git-dir)" .git',
  'makes another repository in its place': 'rm -rf .git; git init -q; git add -A; git commit -qm other',
  'switches branch and removes the others':
    'git checkout -q -b elsewhere; git branch -q -D main; git for-each-ref --format="%(refname)" refs/tags | xargs -r -n 1 git update-ref -d',
  'moves every branch, sets hooks and settings':
    'git update-ref refs/heads/main "$(git commit-tree -m x HEAD^{tree})"; git config core.hooksPath /tmp; git config user.name Mallory; printf "#!/bin/sh\\nfalse\\n" > "$(git rev-parse --absolute-git-dir)/hooks/pre-commit" || true',
  'leaves locks behind': 'd=$(git rev-parse --absolute-git-dir); touch "$d/index.lock" "$d/HEAD.lock"',
  'packs and prunes': 'git commit -qam mine; git reflog expire --expire=now --all; git gc -q --prune=now',
  'is in the middle of a merge':
    'git checkout -q -b side; git commit -q --allow-empty -m side; git checkout -q -; git merge -q --no-ff --no-commit side',
}

describe('an agent that makes a mess of its repository', () => {
  test('lands what is in its tree, once, and the person’s refs, settings and history are as they were', async () => {
    const stage = await WorkStage.begin()
    const { world } = stage
    world.user(['tag', 'v1'])
    world.user(['branch', 'mine'])
    const refs = () => world.user(['for-each-ref', 'refs/tags', 'refs/heads/mine'])
    const settings = () => readFileSync(join(world.project, '.git', 'config'), 'utf8')
    const [before, config] = [refs(), settings()]
    const worker = await stage.worker()
    for (const [mess, script] of Object.entries(MESSES)) {
      const tip = world.tip()
      const a = world.read('a.txt')
      const id = await stage.submit(`echo "${mess}" >> a.txt; ${script}`)
      await worker.perform(id)
      const { run, workspace } = await stage.over(id)
      expect([mess, run.state, run.error, workspace.state, workspace.reason]).toEqual([
        mess,
        'succeeded',
        null,
        'landed',
        null,
      ])
      expect(world.user(['rev-list', `${tip}..main`])).toBe(workspace.sha)
      expect(world.read('a.txt')).toContain(mess.startsWith('resets') ? `${a}more\nagain\n` : `${a}${mess}\n`)
      expect([refs(), settings(), world.status()]).toEqual([before, config, ''])
    }
    expect(oursIn(stage)).toEqual([])
    await stage.assertSound()
  })

  test('and keeps its commits, if that is wanted, only when they go on from where it began', async () => {
    const stage = await WorkStage.begin()
    const { world } = stage
    const worker = await stage.worker()
    const lands = async (script: string): Promise<string[]> => {
      const tip = world.tip()
      const id = await stage.submit(script, { commits: 'keep' })
      await worker.perform(id)
      expect((await stage.over(id)).workspace).toMatchObject({ state: 'landed', reason: null })
      return world.user(['log', '--format=%s', '--reverse', `${tip}..main`]).split('\n')
    }
    const kept = await lands(
      'echo 1 > one.txt; git add -A; git commit -qm one; echo 2 > two.txt; git add -A; git commit -qm two; echo 3 > three.txt',
    )
    expect(kept).toEqual(['one', 'two', 'Work of command'])
    expect(await lands('echo 4 > four.txt; git add -A; git commit -q --amend -m rewritten')).toEqual([
      'Work of command',
    ])
    expect([world.read('three.txt'), world.read('four.txt'), world.status()]).toEqual(['3\n', '4\n', ''])
    await stage.assertSound()
  })
})

/** A repository in the repository, a moved submodule, links that lead out, ignored files, odd names, modes: all at once. */
const ODD = `
git init -q nested; echo in > nested/in.txt; git -C nested add -A; git -C nested commit -qm inner
ln -s OUTSIDE/secret.txt leads-out; ln -s OUTSIDE folder-out; ln -s nowhere dangling
rm -r dir; ln -s OUTSIDE dir
mkdir -p build empty; echo object > build/out.o; echo left > over.log
printf '#!/bin/sh\\n' > tool; chmod +x tool
printf odd > "$(printf 'tab\\there \\303\\251 \\377')"
git clone -q "SUB" sub 2>/dev/null; echo moved > sub/moved.txt; git -C sub add -A; git -C sub commit -qm moved`

describe('what is not only tracked files', () => {
  test('nested repository, submodule, links out, leftovers, odd names: each has its stated end, and nothing outside is touched', async () => {
    const stage = await WorkStage.begin()
    const { world } = stage
    const [outside, sub] = [join(world.folder, 'outside'), join(world.folder, 'sub')]
    for (const folder of [outside, sub]) mkdirSync(folder)
    writeFileSync(join(outside, 'secret.txt'), 'secret\n')
    for (const args of [
      ['init', '-q'],
      ['commit', '-q', '--allow-empty', '-m', 'sub'],
    ])
      world.user(args, sub)
    world.user(['-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', sub, 'sub'])
    world.commit({ '.gitignore': 'build/\n*.log\n' })
    const before = stage.seen()
    const link = world.user(['ls-tree', 'HEAD', 'sub'])
    const script = ODD.replaceAll('OUTSIDE', outside).replace('SUB', sub)
    const { run, workspace } = await stage.through(script, {
      check: { command: 'test ! -e over.log && test -L leads-out' },
    })
    expect([run.error, workspace.state, workspace.reason]).toEqual([null, 'landed', null])
    const leftOut = workspace.leftOut.map(({ path }) => path).toSorted()
    expect(leftOut).toEqual(['nested/', 'sub'])
    const files = Object.keys(stage.seen().files).toSorted()
    const wanted = Object.keys(before.files).filter((name) => name !== 'dir/b.txt')
    const odd = Buffer.from('tab\there \u00E9 ').toString('latin1') + '\u00FF'
    expect(files).toEqual([...wanted, 'leads-out', 'folder-out', 'dangling', 'dir', 'tool', odd].toSorted())
    expect(stage.seen().files).toMatchObject({
      'leads-out': `-> ${join(outside, 'secret.txt')}`,
      tool: 'x #!/bin/sh\n',
    })
    expect(world.user(['ls-tree', 'HEAD', 'sub'])).toBe(link)
    expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).toBe('secret\n')
    expect(execFileSync('ls', [outside], { encoding: 'utf8' })).toBe('secret.txt\n')
    expect([world.status(), oursIn(stage)]).toEqual(['', []])
    await stage.assertSound()
  })
})
