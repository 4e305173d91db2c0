mod ends;
mod studio;
mod troubles;
