const MONTHS = 12;

/** The months until now in UTC, the newest first, such as `2026-10`. */
export function months(): readonly string[] {
  const now = new Date();
  return Array.from({ length: MONTHS }, (_, ago) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago)).toISOString().slice(0, 7),
  );
}

const MONTH_NAME = new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });
/** Such as `October 2026`. */
export const monthName = (month: string): string => MONTH_NAME.format(new Date(`${month}-01T00:00:00Z`));
