import { interruptEverything } from './transitions.ts'

interruptEverything('sqlite')
