import type { Method } from './method.ts'

/** In the order of the report. Loaded when they are asked for: most need a server, a browser or a built program. */
export const METHODS: Readonly<Record<string, () => Promise<Method>>> = {
  simulation: async () => (await import('./simulation/method.ts')).simulation,
  exhaustive: async () => (await import('./exhaustive/method.ts')).exhaustive,
  kill: async () => (await import('./kill/method.ts')).kill,
  'power-loss': async () => (await import('./power-loss/method.ts')).powerLoss,
  'sick-disk': async () => (await import('./sick-disk/method.ts')).sickDisk,
  postgres: async () => (await import('./postgres/method.ts')).postgres,
  zombies: async () => (await import('./zombies/method.ts')).zombies,
  'model-based': async () => (await import('./model-based/method.ts')).modelBased,
  'hostile-tools': async () => (await import('./hostile-tools/method.ts')).hostileTools,
  fuzzing: async () => (await import('./fuzzing/method.ts')).fuzzing,
  soak: async () => (await import('./soak/method.ts')).soak,
  planted: async () => (await import('./planted/method.ts')).planted,
}
