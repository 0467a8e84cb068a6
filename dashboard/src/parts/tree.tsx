import type { Branch } from '../api/shapes.ts'
import { lookOf, shownThread } from '../look/states.ts'
import { threadPath, visible } from '../look/words.ts'
import { Mark } from './small.tsx'

/** A thread and those that it started. */
export function Tree({ branch, here }: { readonly branch: Branch; readonly here: string }) {
  const state = shownThread(branch)
  return (
    <li>
      <a
        href={threadPath(branch.id)}
        aria-current={branch.id === here ? 'page' : undefined}
        class={`hover:bg-hover flex h-8 min-w-0 items-center gap-2 rounded px-1.5 ${branch.id === here ? 'font-semibold' : ''}`}
      >
        <Mark state={state} />
        <span class="truncate">{visible(branch.agent)}</span>
        <span class="text-quiet ml-auto truncate text-xs font-normal" title={visible(branch.id)}>
          {branch.session === undefined ? lookOf(state).word : visible(branch.doing)}
        </span>
      </a>
      {branch.children.length > 0 && (
        <ul class="border-line ml-3 border-l pl-1.5">
          {branch.children.map((child) => (
            <Tree key={child.id} branch={child} here={here} />
          ))}
        </ul>
      )}
    </li>
  )
}
