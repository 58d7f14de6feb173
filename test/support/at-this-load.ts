import { availableParallelism, loadavg } from 'node:os';

/**
 * A bound in milliseconds that a machine with nothing else to do keeps easily, made longer by as much as this machine
 * has to do for each of its processors now. What hangs still breaks it.
 */
export const atThisLoad = (ms: number): number => Math.ceil(ms * Math.max(1, loadavg()[0]! / availableParallelism()));
