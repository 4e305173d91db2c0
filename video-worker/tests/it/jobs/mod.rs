mod ends;
mod foreign;
mod studio;
mod troubles;
