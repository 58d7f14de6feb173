import { inSeconds, messageLines, type MessageFields, type TestWallet } from '../../support/wallets.ts';
import type { Message } from './messages.ts';

/**
 * Messages that are not valid now, valid for too long, or say when in a way that two readers may understand
 * differently.
 */
export function timeMessages(wallet: TestWallet): Message[] {
  const of = (name: string, fields: MessageFields): Message => [name, messageLines(wallet, fields).join('\n')];
  const issued = (value: string): MessageFields => ({ issuedAt: value, expirationTime: inSeconds(600) });
  const iso = (seconds: number) => inSeconds(seconds).slice(0, 19);
  const badly: readonly (readonly [string, string])[] = [
    ['a date alone', iso(0).slice(0, 10)],
    ['a time alone', iso(0).slice(11)],
    ['no offset', iso(0)],
    ['a small z', `${iso(0)}z`],
    ['a small t', `${iso(0).replace('T', 't')}Z`],
    ['a space for the T', `${iso(0).replace('T', ' ')}Z`],
    ['no seconds', `${iso(0).slice(0, 16)}Z`],
    ['a comma', `${iso(0)},000Z`],
    ['a dot without a fraction', `${iso(0)}.Z`],
    ['a fraction of 40 digits', `${iso(0)}.${'1'.repeat(40)}Z`],
    ['an offset without a colon', `${iso(0)}+0000`],
    ['an offset of hours alone', `${iso(0)}+00`],
    ['an offset of 25 hours', `${iso(25 * 3600)}+25:00`],
    ['an offset of 99 minutes', `${iso(99 * 60)}+00:99`],
    ['both Z and an offset', `${iso(0)}Z+00:00`],
    ['a name of a zone', `${iso(0)} UTC`],
    ['a named zone in brackets', `${iso(0)}Z[Europe/Berlin]`],
    ['epoch seconds', String(Math.floor(Date.now() / 1000))],
    ['epoch milliseconds', String(Date.now())],
    ['a date of HTTP', new Date().toUTCString()],
    ['a date of JavaScript', String(new Date())],
    ['now', 'now'],
    ['null', 'null'],
    ['NaN', 'NaN'],
    ['Invalid Date', 'Invalid Date'],
    ['a week', '2030-W05-4T12:00:00Z'],
    ['a day of the year', '2030-031T12:00:00Z'],
    ['the basic form', iso(0).replaceAll(/[-:]/g, '')],
    ['a year of six digits', `+00${iso(0)}Z`],
    ['a negative year', `-00${iso(0)}Z`],
    ['a year of two digits', `${iso(0).slice(2)}Z`],
    ['Arabic digits', `${iso(0).replaceAll(/\d/g, (digit) => String.fromCodePoint(0x660 + Number(digit)))}Z`],
    ['full-width digits', `${iso(0).replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))}Z`],
  ];
  // Dates that a lenient parser would take for one of the days beside them.
  const year = new Date().getUTCFullYear();
  const impossible: readonly (readonly [string, string])[] = [
    ['month 0', `${year}-00-10T12:00:00Z`],
    ['month 13', `${year}-13-10T12:00:00Z`],
    ['day 0', `${year}-01-00T12:00:00Z`],
    ['day 32', `${year}-01-32T12:00:00Z`],
    ['30 February', `${year}-02-30T12:00:00Z`],
    ['29 February of 2027', '2027-02-29T12:00:00Z'],
    ['29 February of 2100', '2100-02-29T12:00:00Z'],
    ['31 April', `${year}-04-31T12:00:00Z`],
    ['hour 25', `${iso(0).slice(0, 11)}25:00:00Z`],
    ['minute 60', `${iso(0).slice(0, 14)}60:00Z`],
    ['second 61', `${iso(0).slice(0, 17)}61Z`],
    ['a leap second', `${iso(0).slice(0, 17)}60Z`],
  ];
  // The same moment as now, had the calendar no end.
  const now = new Date();
  const two = (number: number) => String(number).padStart(2, '0');
  const field = (
    ...parts: readonly [year: number, month: number, day: number, hour: number, minute: number, second: number]
  ) => {
    const [y, month, day, hour, minute, second] = parts.map(two);
    return `${y}-${month}-${day}T${hour}:${minute}:${second}Z`;
  };
  const daysBefore = new Date(Date.UTC(year, now.getUTCMonth(), 0));
  const before = (ms: number) => new Date(now.getTime() - ms);
  const [dayBefore, hourBefore, minuteBefore] = [before(86_400_000), before(3_600_000), before(60_000)];
  const fields = (date: Date) =>
    [
      date.getUTCFullYear(),
      date.getUTCMonth() + 1,
      date.getUTCDate(),
      date.getUTCHours(),
      date.getUTCMinutes(),
      date.getUTCSeconds(),
    ] as const;
  const [, , today, hour, minute, second] = fields(now);
  const overflowing: readonly (readonly [string, string])[] = [
    ['a month of last year', field(year - 1, now.getUTCMonth() + 13, today, hour, minute, second)],
    [
      'a day of last month',
      field(
        daysBefore.getUTCFullYear(),
        daysBefore.getUTCMonth() + 1,
        daysBefore.getUTCDate() + today,
        hour,
        minute,
        second,
      ),
    ],
    [
      'an hour of yesterday',
      field(...(fields(dayBefore).with(3, hour + 24) as [number, number, number, number, number, number])),
    ],
    [
      'a minute of the last hour',
      field(...(fields(hourBefore).with(4, minute + 60) as [number, number, number, number, number, number])),
    ],
    [
      'a second of the last minute',
      field(...(fields(minuteBefore).with(5, second + 60) as [number, number, number, number, number, number])),
    ],
  ];
  return [
    of('that has expired', { issuedAt: inSeconds(-600), expirationTime: inSeconds(-60) }),
    of('that expired in 2020', { issuedAt: '2020-01-01T00:00:00.000Z', expirationTime: '2020-01-01T01:00:00.000Z' }),
    of('that expired in 1970', { issuedAt: '1970-01-01T00:00:00.000Z', expirationTime: '1970-01-01T00:10:00.000Z' }),
    of('that expired by its offset', { issuedAt: inSeconds(-3590), expirationTime: `${iso(7100)}+02:00` }),
    of('that has expired, without the time of issue', { issuedAt: null, expirationTime: inSeconds(-60) }),
    of('that was issued too long ago', { issuedAt: inSeconds(-3700), expirationTime: null }),
    of('that was issued too long ago and expires too late', {
      issuedAt: inSeconds(-7000),
      expirationTime: inSeconds(300),
    }),
    of('that was issued in 1970', { issuedAt: '1970-01-01T00:00:00Z', expirationTime: null }),
    of('that was issued in the year 0', issued('0000-01-01T00:00:00Z')),
    of('that was issued in the future', { issuedAt: inSeconds(120), expirationTime: inSeconds(600) }),
    of('that was issued in the future, without an end', { issuedAt: inSeconds(120), expirationTime: null }),
    of('that was issued in the year 9999', { issuedAt: '9999-12-31T23:59:59Z', expirationTime: null }),
    of('that was issued in the future by its offset', { issuedAt: `${iso(0)}-01:00`, expirationTime: null }),
    of('that expires before it was issued', { issuedAt: inSeconds(0), expirationTime: inSeconds(-20) }),
    of('that is valid for more than an hour', { issuedAt: inSeconds(0), expirationTime: inSeconds(3700) }),
    of('that is valid for a year', { issuedAt: inSeconds(0), expirationTime: inSeconds(365 * 86_400) }),
    of('that is valid until 9999', { issuedAt: inSeconds(0), expirationTime: '9999-12-31T23:59:59Z' }),
    of('that is valid until 275760', { issuedAt: inSeconds(0), expirationTime: '+275760-09-13T00:00:00.000Z' }),
    of('that expires too late, without the time of issue', { issuedAt: null, expirationTime: inSeconds(3700) }),
    of('that is valid too long by its offset', { issuedAt: inSeconds(0), expirationTime: `${iso(600)}-02:00` }),
    of('that is not valid yet', { notBefore: inSeconds(300) }),
    of('that is not valid before 2099', { notBefore: '2099-01-01T00:00:00Z' }),
    of('that is valid from a time after its end', { notBefore: inSeconds(900) }),
    of('that is valid from a time after its end, both a moment ago', {
      issuedAt: inSeconds(-600),
      expirationTime: inSeconds(-10),
      notBefore: inSeconds(-5),
    }),
    of('that has Not Before alone', { issuedAt: null, expirationTime: null, notBefore: inSeconds(-60) }),
    of('that has neither a time of issue nor an end', { issuedAt: null, expirationTime: null }),
    ...badly.map(([name, value]) => of(`that was issued at ${name}`, issued(value))),
    ...badly
      .slice(0, 12)
      .map(([name, value]) => of(`that expires at ${name}`, { expirationTime: value.replace(iso(0), iso(300)) })),
    ...badly
      .slice(0, 6)
      .map(([name, value]) => of(`that is valid from ${name}`, { notBefore: value.replace(iso(0), iso(-60)) })),
    ...impossible.map(([name, value]) => of(`that was issued at ${name}`, issued(value))),
    ...overflowing.map(([name, value]) => of(`that was issued now, told as ${name}`, issued(value))),
    ...impossible.slice(0, 6).map(([name, value]) => of(`that expires at ${name}`, { expirationTime: value })),
  ];
}
