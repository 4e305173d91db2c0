mod ends;
mod failures;
mod fixture;
mod foreign;
mod privacy;
