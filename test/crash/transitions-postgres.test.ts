import { interruptEverything } from './transitions.ts'

interruptEverything('postgres')
