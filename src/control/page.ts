/** `next` is what to give as `after` for the page that follows; without it this is the last. */
export function paged<T extends { readonly id: string }>(items: readonly T[], limit: number) {
  const last = items.at(-1)
  return { items, ...(items.length === limit && last !== undefined ? { next: last.id } : {}) }
}

/** Without what is undefined: a field that nobody gave is absent. */
export function filled<T extends object>(fields: T): { readonly [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never
}
