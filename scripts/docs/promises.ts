import { CLAIMS } from '../../test/claims/claims.ts'
import { PROMISES } from '../../test/promises.ts'
import { claimsIn, promisesIn, titlesIn } from '../../test/tidy/citations.ts'
import type { Owed, Title } from '../../test/tidy/citations.ts'
import { sourcesBelow } from '../../test/tidy/tree.ts'
import { page } from './markdown.ts'

export function promisesPage(): string {
  const titles = titlesIn(sourcesBelow('src', 'test'))
  return page(
    'What is promised, and what proves it',
    'A promise is kept by tests that fail when it is broken, and cite its id. The build fails for one that has none. Most of these titles stand for many cases: both databases,\nevery statement at which a process can die, every pair of ends. [reliability.md](reliability.md) has what the fault campaigns saw beyond them.',
    'Towards foreign systems it is "done once, or you are told that we do not know". A command whose supervisor was killed in the middle ends as `lost`, and is never run again by itself.',
    '## The promises',
    ...PROMISES.flatMap((promise) => section(promise, titles, promisesIn)),
    '## The claims',
    'Faults that real agent systems had, and what is there instead.',
    ...CLAIMS.flatMap((claim) => section(claim, titles, claimsIn)),
  )
}

function section({ id, text }: Owed, titles: readonly Title[], idsIn: (title: string) => string[]): string[] {
  const proofs = titles.filter(({ title }) => idsIn(title).includes(id))
  const lines = proofs.map(({ file, title }) => `- ${plain(title)} (\`${file}\`)`)
  return [`### ${id}`, text, [...new Set(lines)].toSorted().join('\n')]
}

/** Without the ids; what a table of cases puts in is a `…`. */
const plain = (title: string) =>
  title
    .replaceAll(/ ?\[[\w/-]+\]/g, '')
    .replaceAll(/\$\{?[\w.]+\}?|%[sdj]/g, '…')
    .replaceAll(/[<>*_\\]/g, (sign) => `\\${sign}`)
