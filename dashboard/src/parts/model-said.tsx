import { Seen } from './small.tsx'

/** What the model said beside a call. */
export function ModelSaid({ text }: { readonly text: string | undefined }) {
  if (text === undefined) return null
  return (
    <blockquote class="border-line border-l-2 pl-3">
      <p class="text-quiet text-xs">The model said, which is its word and nothing more</p>
      <p class="wrap-anywhere whitespace-pre-wrap">
        <Seen text={text} />
      </p>
    </blockquote>
  )
}
