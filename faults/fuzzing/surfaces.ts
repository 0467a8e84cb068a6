import { commandLine } from './arguments.ts'
import { config } from './config.ts'
import { names } from './file-names.ts'
import { hooks } from './hooks.ts'
import { http } from './http.ts'
import { replies } from './replies.ts'
import type { Surface } from './surface.ts'

/** Which seed has which is by its place here. */
export const SURFACES: readonly Surface[] = [http, hooks, commandLine, config, replies, names]
