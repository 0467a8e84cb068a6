import type { Method } from './method.ts'

/** In the order of the report. Loaded when they are asked for: most need a server, a browser or a built program. */
export const METHODS: Readonly<Record<string, () => Promise<Method>>> = {
  simulation: async () => (await import('./simulation/method.ts')).simulation,
}
