//! A date and a time of day, and how templates write them.

use std::fmt::Write as _;

/// What a clock on the wall shows. Templates that put today's date into the prompt need one,
/// and this crate reads no clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CivilTime {
    /// Year of the common era.
    pub year: i32,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day of the month, 1 to 31.
    pub day: u8,
    /// Hour, 0 to 23.
    pub hour: u8,
    /// Minute, 0 to 59.
    pub minute: u8,
    /// Second, 0 to 59.
    pub second: u8,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

impl CivilTime {
    /// The time in UTC that is `seconds` after the beginning of 1970. For local time add the
    /// zone's offset first. Years beyond ±2 billion end at those.
    #[must_use]
    pub fn from_unix_seconds(seconds: i64) -> Self {
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = date_of_day(days);
        let small = |value: i64| u8::try_from(value).unwrap_or(u8::MAX);
        Self {
            year: i32::try_from(year).unwrap_or(if year < 0 { i32::MIN } else { i32::MAX }),
            month: small(month),
            day: small(day),
            hour: small(second / 3600),
            minute: small(second / 60 % 60),
            second: small(second % 60),
        }
    }

    /// The time in the form that Python's `strftime` gives it in the C locale, or the first
    /// directive that we do not know.
    pub(crate) fn format(&self, format: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = format.chars();
        while let Some(character) = rest.next() {
            if character != '%' {
                out.push(character);
                continue;
            }
            let mut directive = rest.next();
            let unpadded = directive == Some('-');
            if unpadded {
                directive = rest.next();
            }
            let field = directive.and_then(|letter| self.field(letter));
            let field = field.ok_or_else(|| format!("%{}", directive.unwrap_or_default()))?;
            out += if unpadded { without_padding(&field) } else { &field };
        }
        Ok(out)
    }

    fn field(&self, letter: char) -> Option<String> {
        let month = MONTHS.get(usize::from(self.month).checked_sub(1)?)?;
        let weekday = WEEKDAYS[self.weekday()];
        let hour12 = (self.hour + 11) % 12 + 1;
        let mut out = String::new();
        let written = match letter {
            'Y' => write!(out, "{}", self.year),
            'y' => write!(out, "{:02}", self.year.rem_euclid(100)),
            'm' => write!(out, "{:02}", self.month),
            'B' => write!(out, "{month}"),
            'b' | 'h' => write!(out, "{}", &month[..3]),
            'd' => write!(out, "{:02}", self.day),
            'e' => write!(out, "{:2}", self.day),
            'j' => write!(out, "{:03}", self.day_of_year()),
            'A' => write!(out, "{weekday}"),
            'a' => write!(out, "{}", &weekday[..3]),
            'w' => write!(out, "{}", self.weekday()),
            'u' => write!(out, "{}", (self.weekday() + 6) % 7 + 1),
            'H' => write!(out, "{:02}", self.hour),
            'I' => write!(out, "{hour12:02}"),
            'M' => write!(out, "{:02}", self.minute),
            'S' => write!(out, "{:02}", self.second),
            'p' => write!(out, "{}", if self.hour < 12 { "AM" } else { "PM" }),
            'F' => write!(out, "{}-{:02}-{:02}", self.year, self.month, self.day),
            'T' => write!(out, "{:02}:{:02}:{:02}", self.hour, self.minute, self.second),
            'D' => {
                write!(out, "{:02}/{:02}/{:02}", self.month, self.day, self.year.rem_euclid(100))
            }
            'Z' | 'z' => Ok(()), // Python's `datetime.now()` knows no zone either.
            '%' => write!(out, "%"),
            _ => return None,
        };
        written.ok().map(|()| out)
    }

    /// 0 for Sunday.
    fn weekday(&self) -> usize {
        let days = day_of_date(self.year.into(), self.month.into(), self.day.into());
        usize::try_from((days + 4).rem_euclid(7)).unwrap_or(0)
    }

    /// 1 for the first of January.
    fn day_of_year(&self) -> i64 {
        let year = i64::from(self.year);
        day_of_date(year, self.month.into(), self.day.into()) - day_of_date(year, 1, 1) + 1
    }
}

fn without_padding(field: &str) -> &str {
    let trimmed = field.trim_start_matches(['0', ' ']);
    if trimmed.is_empty() { "0" } else { trimmed }
}

/// Days in four hundred years of the Gregorian calendar.
const ERA_DAYS: i64 = 146_097;

/// Days from 0000-03-01 to 1970-01-01. Years that begin in March have their leap day last.
const EPOCH: i64 = 719_468;

/// Days since 1970-01-01.
fn day_of_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * ERA_DAYS + year * 365 + year / 4 - year / 100 + day_of_year - EPOCH
}

/// Year, month and day, that many days after 1970-01-01.
fn date_of_day(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH;
    let (era, day) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year = (day - day / 1460 + day / 36_524 - day / (ERA_DAYS - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day + 2) / 153;
    let month = (shifted + 2) % 12 + 1;
    let year = era * 400 + year + i64::from(month <= 2);
    (year, month, day - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Compared with `date -u -d @N +FORMAT` of GNU coreutils.
    #[test]
    fn formats_as_date_does() {
        let time = CivilTime::from_unix_seconds(1_709_209_445);
        let format = |format| time.format(format).expect("known directives");
        assert_eq!(format("%d %b %Y"), "29 Feb 2024");
        assert_eq!(format("%A, %B %-d %y, %j %w %u"), "Thursday, February 29 24, 060 4 4");
        assert_eq!(
            format("%F %T %I %p %H:%M:%S %D %a"),
            "2024-02-29 12:24:05 12 PM 12:24:05 02/29/24 Thu"
        );
        let time = CivilTime::from_unix_seconds(-1);
        assert_eq!(
            time.format("%F %T %a %e 100%%").as_deref(),
            Ok("1969-12-31 23:59:59 Wed 31 100%")
        );
        let time = CivilTime::from_unix_seconds(951_782_400);
        assert_eq!(time.format("%c"), Err("%c".to_owned()));
        assert_eq!(time.format("%F %-I %-H").as_deref(), Ok("2000-02-29 12 0"));
        assert_eq!(time.format("%"), Err("%\0".to_owned()));
    }

    proptest! {
        #[test]
        fn dates_and_days_are_inverse(days in -1_000_000..10_000_000_i64) {
            let (year, month, day) = date_of_day(days);
            prop_assert_eq!(day_of_date(year, month, day), days);
            let (next_year, next_month, next_day) = date_of_day(days + 1);
            prop_assert!((year, month, day) < (next_year, next_month, next_day));
            prop_assert!((1..=12).contains(&month) && (1..=31).contains(&day));
        }
    }
}
