/** Three digits that mean something. */
export function shown(value: number): string {
  if (!Number.isFinite(value)) return '–'
  const size = Math.abs(value)
  if (size >= 1_000) return Math.round(value).toLocaleString('en-US')
  if (size >= 100) return value.toFixed(0)
  if (size >= 10) return value.toFixed(1)
  return value === 0 ? '0' : value.toFixed(size < 0.1 ? 3 : 2)
}

export const withUnit = (value: number, unit: string) =>
  `${shown(value)}${unit === '' || unit.startsWith('/') ? '' : ' '}${unit}`
