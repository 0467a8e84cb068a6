import { visible } from '../look/words.ts'
import { Bytes } from './bytes.tsx'
import { Seen } from './small.tsx'

/** The input inside the exact bytes that a decision covers: from nowhere else, so that what is read is what would run. */
function inputIn(shown: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const { input } = JSON.parse(shown) as { readonly input?: unknown }
    const isObject = typeof input === 'object' && input !== null && !Array.isArray(input)
    return isObject ? (input as Readonly<Record<string, unknown>>) : undefined
  } catch {
    return undefined
  }
}

const LONG = 4000

const valueText = (value: unknown) => (typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? ''))

/** What would run: its arguments one by one, as a person reads them, and the bytes themselves. */
export function Arguments({ shown }: { readonly shown: string }) {
  const input = inputIn(shown)
  const fields = Object.entries(input ?? {})
  const readable = fields.length > 0 && fields.every(([, value]) => valueText(value).length < LONG)
  return (
    <div class="grid gap-3">
      {readable && (
        <dl class="panel grid overflow-hidden md:grid-cols-[minmax(6rem,max-content)_1fr]">
          {fields.map(([name, value]) => (
            <div key={name} class="contents [&:last-child>*]:border-b-0">
              <dt class="text-quiet border-line px-3 pt-2 font-mono text-xs leading-5 md:border-b md:py-2">
                {visible(name)}
              </dt>
              <dd class="bytes border-line border-b px-3 pb-2 md:py-2">
                <Seen text={valueText(value)} />
              </dd>
            </div>
          ))}
        </dl>
      )}
      <Bytes value={shown} label={readable ? 'The exact bytes that a yes covers' : 'Exactly what would run'} />
    </div>
  )
}
