import { visible } from '../words/output.ts'
import type { BranchView } from '../words/views.ts'

export const describeBranch = (thread: BranchView): string => [lineOf(thread), ...twigs(thread.children, '')].join('\n')

function twigs(children: readonly BranchView[], margin: string): string[] {
  return children.flatMap((child, index) => {
    const isLast = index === children.length - 1
    const own = twigs(child.children, `${margin}${isLast ? '   ' : '│  '}`)
    return [`${margin}${isLast ? '└─' : '├─'} ${lineOf(child)}`, ...own]
  })
}

function lineOf({ id, agent, doing, pending }: BranchView): string {
  return visible(`${id}  ${agent}  ${doing}${pending === 0 ? '' : `, ${pending} waiting`}`)
}
