/** How soon somebody should look: `error` now, `warn` if it stays. */
type ProblemLevel = 'info' | 'warn' | 'error';

/** Told of what an operator should look at. `of` names it, and has the `error` where there is one. */
export type OnProblem = (level: ProblemLevel, problem: string, of: Readonly<Record<string, unknown>>) => void;
