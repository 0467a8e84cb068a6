import { doing } from '../sessions/branch.ts'
import type { Branch } from '../sessions/branch.ts'
import type { Relative } from '../sessions/tree.ts'
import { visible } from './output.ts'

export const describeBranch = ({ thread, children }: Branch): string =>
  [lineOf(thread), ...twigs(children, '')].join('\n')

function twigs(children: readonly Branch[], margin: string): string[] {
  return children.flatMap(({ thread, children: own }, index) => {
    const isLast = index === children.length - 1
    return [`${margin}${isLast ? '└─' : '├─'} ${lineOf(thread)}`, ...twigs(own, `${margin}${isLast ? '   ' : '│  '}`)]
  })
}

function lineOf(thread: Relative): string {
  const waits = thread.pending === 0 ? '' : `, ${thread.pending} waiting`
  return visible(`${thread.id}  ${thread.agent}  ${doing(thread)}${waits}`)
}
